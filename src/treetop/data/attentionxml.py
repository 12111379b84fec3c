"""AttentionXML folders: ``train_raw_texts.txt`` (or ``train_texts.txt``) and ``train_labels.txt``."""

from __future__ import annotations

from pathlib import Path

from treetop.data.dataset import Dataset
from treetop.data.files import find_file, write_lines
from treetop.data.holding import check_characters, labels_of, lines_of_text
from treetop.data.options import ReadOptions
from treetop.data.textlines import dataset_of_lines

NAME = "attentionxml"
USES = ("encoding",)
ABOUT = "AttentionXML: train_raw_texts.txt and train_labels.txt, labels separated by spaces"
READY_FEATURES = True  # are looked for beside the texts
SHORT = {"train": "train", "dev": "valid", "test": "test"}


def texts_file(folder: Path, short: str) -> Path | None:
    """The file of raw texts if there is one, else that of tokenized texts."""
    return find_file(folder, f"{short}_raw_texts.txt", f"{short}_texts.txt")


def matches(path: Path) -> bool:
    """Whether a folder is of this format."""
    return path.is_dir() and any(texts_file(path, short) for short in SHORT.values())


def read(path: Path, options: ReadOptions) -> Dataset:
    """Read all splits."""
    files = {
        name: (texts, find_file(path, f"{short}_labels.txt"))
        for name, short in SHORT.items()
        if (texts := texts_file(path, short)) is not None
    }
    return dataset_of_lines(NAME, files, options, separator=None)


def write(dataset: Dataset, folder: Path) -> None:
    """Write a file of raw texts and a file of labels per split."""
    for name, split in dataset.splits.items():
        labels = labels_of(split, dataset.label_names, NAME)
        check_characters(labels, NAME, " \t\n\r\v\f\u2028")
        write_lines(folder / f"{SHORT[name]}_raw_texts.txt", lines_of_text(split, NAME))
        write_lines(folder / f"{SHORT[name]}_labels.txt", (" ".join(line) for line in labels))
