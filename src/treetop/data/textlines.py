"""Text lines: ``train.txt`` a document a line, ``train.labels`` its labels separated by tabs."""

from __future__ import annotations

from pathlib import Path

from treetop.data.dataset import Dataset, Split
from treetop.data.files import find, lines_of
from treetop.errors import TreetopError

SPLITS = ("train", "dev", "test")


def matches(path: Path) -> bool:
    """Whether a folder holds this format."""
    return path.is_dir() and any(find(path, f"{name}.txt") for name in SPLITS)


def read(path: Path) -> Dataset:
    """All splits that are there."""
    splits = {}
    for name in SPLITS:
        texts = find(path, f"{name}.txt")
        if texts is not None:
            splits[name] = read_split(texts, find(path, f"{name}.labels"))
    return Dataset("text lines", splits)


def read_split(texts_file: Path, labels_file: Path | None) -> Split:
    """One split; without a file of labels, texts alone."""
    texts = list(lines_of(texts_file))
    if not texts:
        raise TreetopError(f"{texts_file}: empty file")
    if labels_file is None:
        return Split(texts, None)
    labels = [split_labels(line) for line in lines_of(labels_file)]
    if len(labels) != len(texts):
        raise TreetopError(
            f"{labels_file}: {len(labels):,} lines of labels for {len(texts):,} documents "
            f"in {texts_file.name}"
        )
    return Split(texts, labels)


def split_labels(line: str) -> list[str]:
    """Labels of a line; duplicates once, in their order."""
    return list(dict.fromkeys(label for label in line.split("\t") if label))
