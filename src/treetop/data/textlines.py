"""Text lines: ``train.txt`` a document a line, ``train.labels`` its labels separated by tabs."""

from __future__ import annotations

from pathlib import Path

from treetop.data.dataset import SPLITS, Columns, Dataset, Split
from treetop.data.files import find_file, lines_of, plain_name, write_lines
from treetop.data.holding import check_characters, lines_of_text
from treetop.errors import TreetopError

NAME = "text-lines"
ABOUT = "a folder with train.txt, a document a line, and train.labels, its labels separated by tabs"


def matches(path: Path) -> bool:
    """Whether a folder, or a file of texts, is of this format."""
    if path.is_file():
        return plain_name(path).endswith(".txt")
    return any(find_file(path, f"{name}.txt") for name in SPLITS)


def is_certain(path: Path) -> bool:
    """Whether a file of labels says so, whatever the texts begin with."""
    return path.is_dir() and any(
        find_file(path, f"{name}.txt") and find_file(path, f"{name}.labels") for name in SPLITS
    )


def read(path: Path, _: Columns) -> Dataset:
    """All splits that are there."""
    if path.is_file():
        labels = path.with_name(path.name.replace(".txt", ".labels"))
        return Dataset(NAME, {"train": read_text_lines(path, labels if labels.is_file() else None)})
    found = {name: find_file(path, f"{name}.txt") for name in SPLITS}
    return Dataset(
        NAME,
        {
            name: read_text_lines(texts, find_file(path, f"{name}.labels"))
            for name, texts in found.items()
            if texts
        },
    )


def read_text_lines(texts_file: Path, labels_file: Path | None, separator: str | None = "\t") -> Split:
    """One split; without a file of labels, texts alone. Separator None: any blanks."""
    texts = list(lines_of(texts_file))
    if not texts:
        raise TreetopError(f"{texts_file}: empty file")
    if labels_file is None:
        return Split(texts, None)
    labels = [split_labels(line, separator) for line in lines_of(labels_file)]
    if len(labels) != len(texts):
        raise TreetopError(
            f"{labels_file}: {len(labels):,} lines of labels for {len(texts):,} documents "
            f"in {texts_file.name}"
        )
    return Split(texts, labels)


def split_labels(line: str, separator: str | None) -> list[str]:
    """Labels of a line; duplicates once, in their order."""
    return list(dict.fromkeys(label for label in line.split(separator) if label))


def write(dataset: Dataset, folder: Path) -> None:
    """A file of texts and one of labels for each split."""
    for name, split in dataset.splits.items():
        write_lines(folder / f"{name}.txt", lines_of_text(split, NAME))
        if split.has_labels:
            labels = split.named_labels(dataset.label_names)
            check_characters(labels, NAME, "\t\n\r")
            write_lines(folder / f"{name}.labels", ("\t".join(line) for line in labels))
