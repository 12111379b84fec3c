"""Matrices: ``X.npz`` and ``Y.npz`` of scipy; PECOS: ``X.trn.txt`` or ``X.trn.npz``, ``Y.trn.npz``.

Of a split with both, the texts are read here; `treetop.data.ready` adds the features.
"""

from __future__ import annotations

from pathlib import Path

import scipy.sparse as sp

from treetop.data.dataset import Dataset, Split, clean_labels
from treetop.data.files import find_file, lines_of, write_lines
from treetop.data.holding import check_characters, label_matrix_of, lines_of_text
from treetop.data.labelnames import with_names_of
from treetop.data.npz import load_matrix
from treetop.data.options import ReadOptions
from treetop.data.reading import Recognized
from treetop.data.sizes import check_columns
from treetop.data.xmlrepo_split import SHORT
from treetop.errors import TreetopError
from treetop.runtime.texts import kept_texts

NAME = "pecos"
USES = ("merge_duplicates",)
ABOUT = "a PECOS folder: X.trn.txt or X.trn.npz, Y.trn.npz, output-items.txt; or X.npz and Y.npz"
NAMES = ("output-items.txt", "Y.txt", "labels.txt")
# What the files of a split may be called after X or Y; those of PECOS come first.
ENDINGS = {
    "train": (".trn", ".train", "_train", "_trn", ""),
    "dev": (".val", ".valid", ".dev", "_val", "_valid", "_dev"),
    "test": (".tst", ".test", "_test", "_tst"),
}
SUFFIX = ".npz"
READY_FEATURES = True  # are looked for beside the texts


def matrix_files(path: Path) -> dict[str, str]:
    """The ending of the names of the files of each split, for those that have a matrix."""
    return {
        split: ending
        for split, endings in ENDINGS.items()
        for ending in reversed(endings)  # the first that exists wins
        if any((path / f"{kind}{ending}{SUFFIX}").is_file() for kind in "XY")
    }


def matches(path: Path) -> bool:
    """Whether a folder, or a file of features, is of this format."""
    if path.is_file():
        return path.name.endswith(SUFFIX)
    endings = (ending for listed in ENDINGS.values() for ending in listed)
    return path.is_dir() and any((path / f"Y{ending}{SUFFIX}").is_file() for ending in endings)


def read(path: Path, options: ReadOptions) -> Dataset:
    """Read all splits, or a file of features with the labels beside it."""
    folder = path
    if path.is_file():
        if path.name.startswith("Y"):
            raise TreetopError(f"{path}: holds labels: give the file of features, X{path.name[1:]}")
        labels = path.with_name(f"Y{path.name[1:]}") if path.name.startswith("X") else None
        files, folder = {"train": (path, labels)}, path.parent
    else:
        files = {
            split: (path / f"X{ending}{SUFFIX}", path / f"Y{ending}{SUFFIX}")
            for split, ending in matrix_files(path).items()
        }
    splits = {name: read_pecos_split(*pair) for name, pair in files.items()}
    widths = {split.Y.shape[1] for split in splits.values() if split.Y is not None}
    if len(widths) > 1:
        raise TreetopError(f"{path}: the splits have different numbers of labels: {sorted(widths)}")
    read_files = tuple(file for pair in files.values() for file in pair if file is not None)
    dataset = Dataset(NAME, splits, reading=Recognized(files=read_files)).same_width()
    return with_names_of(dataset, find_file(folder, *NAMES) if widths else None, options)


def read_pecos_split(features: Path, labels: Path | None) -> Split:
    """Read one split: its texts if there are any, else its features; `labels` need not exist."""
    Y = None
    if labels is not None and labels.is_file():
        Y = clean_labels(load_matrix(labels))
        check_columns(labels, Y.shape[1], Y.nnz + Y.shape[0], "labels")
    texts_file = find_file(features.parent, f"{features.stem}.txt")
    if texts_file is not None:
        texts = kept_texts(lines_of(texts_file))
        if Y is not None and len(texts) != Y.shape[0]:
            raise TreetopError(
                f"{texts_file}: {len(texts)} lines, but Y{features.name[1:]} has {Y.shape[0]} rows"
            )
        return Split(texts, None, None, Y)
    X = load_matrix(features)
    if Y is not None and X.shape[0] != Y.shape[0]:
        raise TreetopError(
            f"{features} has {X.shape[0]} rows, but Y{features.name[1:]} has {Y.shape[0]}"
        )
    if not X.shape[0]:
        raise TreetopError(f"{features}: no documents: add at least one")
    return Split(None, None, X, Y)


def write(dataset: Dataset, folder: Path) -> None:
    """Write texts or features and the label matrix of every split, and the label names."""
    dataset = dataset.with_matrices()
    check_characters([dataset.label_names or []], NAME, "\n\r")
    for name, split in dataset.splits.items():
        Y = label_matrix_of(split, name, NAME)
        if split.texts is not None:
            write_lines(folder / f"X.{SHORT[name]}.txt", lines_of_text(split, NAME))
        if split.X is not None:
            sp.save_npz(folder / f"X.{SHORT[name]}.npz", sp.csr_matrix(split.X))
        sp.save_npz(folder / f"Y.{SHORT[name]}.npz", sp.csr_matrix(Y))
    write_lines(folder / NAMES[0], dataset.label_names or [])
