"""Text lines: ``train.txt`` with one document per line, ``train.labels`` with tab-separated labels."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from treetop.data.cells import doubts_about
from treetop.data.dataset import SPLITS, Dataset, Split
from treetop.data.encodings import UTF8, other_than_utf8
from treetop.data.files import encoding_of, find_file, lines_of, plain_name, write_lines
from treetop.data.holding import check_characters, lines_of_text
from treetop.data.options import ReadOptions
from treetop.data.reading import Recognized
from treetop.errors import TreetopError
from treetop.labels.separators import label_reading, pieces_of
from treetop.runtime.texts import kept_texts

NAME = "text-lines"
USES = ("encoding", "label_separator")
ABOUT = "a folder with train.txt, one document per line, and train.labels, labels separated by tabs"
TAB = "\t"


def matches(path: Path) -> bool:
    """Whether a folder, or a file of texts, is of this format."""
    if path.is_file():
        return plain_name(path).endswith(".txt")
    return any(find_file(path, f"{name}.txt") for name in SPLITS)


def is_certain(path: Path) -> bool:
    """Whether a file of labels proves the format, whatever the texts look like."""
    return path.is_dir() and any(
        find_file(path, f"{name}.txt") and find_file(path, f"{name}.labels") for name in SPLITS
    )


def read(path: Path, options: ReadOptions) -> Dataset:
    """Read all splits."""
    if path.is_file():
        labels = path.with_name(path.name.replace(".txt", ".labels"))
        return dataset_of_lines(NAME, {"train": (path, labels if labels.is_file() else None)}, options)
    files = {
        name: (find_file(path, f"{name}.txt"), find_file(path, f"{name}.labels")) for name in SPLITS
    }
    found = {name: (texts, labels) for name, (texts, labels) in files.items() if texts is not None}
    return dataset_of_lines(NAME, found, options)


def dataset_of_lines(
    form: str,
    files: dict[str, tuple[Path, Path | None]],
    options: ReadOptions,
    separator: str | None = TAB,
) -> Dataset:
    """Read files of texts and of labels by split; a separator of None means any whitespace."""
    splits, encodings = {}, []
    if options.separator is not None and options.separator != " ":
        separator = options.separator
    elif options.separator is not None:
        separator = None
    for name, (texts, labels) in files.items():
        own = [encoding_of(file, options.encoding) for file in (texts, labels) if file is not None]
        splits[name] = read_text_lines(texts, labels, separator, own)
        encodings += own
    every = tuple(file for pair in files.values() for file in pair if file is not None)
    doubts = () if options.separator is not None else doubts_about_lines(splits, separator)
    reading = Recognized(encoding=other_than_utf8(encodings), files=every, warnings=doubts)
    return Dataset(form, splits, reading=reading)


def doubts_about_lines(splits: dict[str, Split], separator: str | None) -> tuple[str, ...]:
    """A warning if lines of labels look as if something else separated the labels."""
    lines = [line for split in splits.values() for line in split.labels or ()]
    if separator == TAB and all(len(line) < 2 for line in lines):
        reading = label_reading(line[0] for line in lines if line)
        if reading.plausible:
            example = next(line[0] for line in lines if line and reading.plausible[0] in line[0])
            return (
                f"lines of labels such as {example[:60]!r} have no tab: each is read as one label; "
                f"divide them with --label-separator {reading.plausible[0]!r}, or confirm with "
                "--label-separator tab",
            )
    return tuple(doubts_about(lines, "the files of labels", False))


def read_text_lines(
    texts_file: Path,
    labels_file: Path | None,
    separator: str | None = TAB,
    encodings: Sequence[str] = (UTF8, UTF8),
) -> Split:
    """Read one split, unlabeled without a file of labels; separator None means any whitespace.

    `encodings` are those of the two files.
    """
    texts = kept_texts(lines_of(texts_file, encodings[0]))
    if not texts:
        raise TreetopError(f"{texts_file}: empty file: add at least one document")
    if labels_file is None:
        return Split(texts, None)
    lines = lines_of(labels_file, encodings[1])
    labels = [list(map(sys.intern, split_labels(line, separator))) for line in lines]
    if len(labels) != len(texts):
        raise TreetopError(
            f"{labels_file}: {len(labels):,} lines of labels, but {texts_file.name} has {len(texts):,} "
            "documents: leave an empty line for a document without labels"
        )
    return Split(texts, labels)


def split_labels(line: str, separator: str | None) -> list[str]:
    """Labels of a line, each once, in order."""
    if separator in (None, TAB):
        return list(dict.fromkeys(filter(None, line.split(separator))))
    return list(dict.fromkeys(pieces_of(line, separator) if separator else [line] if line else []))


def write(dataset: Dataset, folder: Path) -> None:
    """Write a file of texts and a file of labels per split."""
    for name, split in dataset.splits.items():
        write_lines(folder / f"{name}.txt", lines_of_text(split, NAME))
        if split.has_labels:
            labels = split.named_labels(dataset.label_names)
            check_characters(labels, NAME, "\t\n\r")
            write_lines(folder / f"{name}.labels", ("\t".join(line) for line in labels))
