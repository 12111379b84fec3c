"""AttentionXML's folders: ``train_raw_texts.txt`` (or ``train_texts.txt``) and ``train_labels.txt``."""

from __future__ import annotations

from pathlib import Path

from treetop.data.dataset import Columns, Dataset, Split
from treetop.data.files import find, lines_of, write_lines
from treetop.data.holding import check_labels, labels_of, lines_of_text
from treetop.errors import TreetopError

NAME = "attentionxml"
ABOUT = "AttentionXML: train_raw_texts.txt and train_labels.txt, labels separated by spaces"
SHORT = {"train": "train", "dev": "valid", "test": "test"}


def texts_file(folder: Path, short: str) -> Path | None:
    """The raw texts if they are there, else the texts cut into words."""
    return find(folder, f"{short}_raw_texts.txt", f"{short}_texts.txt")


def matches(path: Path) -> bool:
    """Whether a folder holds this format."""
    return path.is_dir() and any(texts_file(path, short) for short in SHORT.values())


def read(path: Path, _: Columns) -> Dataset:
    """All splits that are there."""
    splits = {}
    for name, short in SHORT.items():
        texts = texts_file(path, short)
        if texts is not None:
            splits[name] = read_split(texts, find(path, f"{short}_labels.txt"))
    return Dataset(NAME, splits)


def read_split(texts_path: Path, labels_path: Path | None) -> Split:
    """One split."""
    texts = list(lines_of(texts_path))
    if not texts:
        raise TreetopError(f"{texts_path}: empty file")
    if labels_path is None:
        return Split(texts, None)
    labels = [list(dict.fromkeys(line.split())) for line in lines_of(labels_path)]
    if len(labels) != len(texts):
        raise TreetopError(
            f"{labels_path}: {len(labels):,} lines of labels for {len(texts):,} documents "
            f"in {texts_path.name}"
        )
    return Split(texts, labels)


def write(dataset: Dataset, folder: Path) -> None:
    """Raw texts and labels of each split."""
    for name, split in dataset.splits.items():
        labels = labels_of(split, dataset.label_names, NAME)
        check_labels(labels, NAME, " \t\n\r\v\f\u2028")
        write_lines(folder / f"{SHORT[name]}_raw_texts.txt", lines_of_text(split, NAME))
        write_lines(folder / f"{SHORT[name]}_labels.txt", (" ".join(line) for line in labels))
