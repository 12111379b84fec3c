"""PECOS's folders: ``X.trn.npz``, ``Y.trn.npz`` (scipy matrices), texts and label names if there."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from treetop.data.dataset import Columns, Dataset, Split, check_label_names, clean_labels
from treetop.data.files import find_file, lines_of, write_lines
from treetop.data.holding import check_characters, lines_of_text
from treetop.data.xmlrepo_split import SHORT
from treetop.errors import TreetopError

NAME = "pecos"
ABOUT = "a PECOS folder: X.trn.txt or X.trn.npz, Y.trn.npz, output-items.txt"
NAMES = ("output-items.txt", "Y.txt", "labels.txt")


def matches(path: Path) -> bool:
    """Whether a folder holds this format."""
    return path.is_dir() and any((path / f"Y.{short}.npz").is_file() for short in SHORT.values())


def read(path: Path, _: Columns) -> Dataset:
    """All splits that are there."""
    splits = {}
    for name, short in SHORT.items():
        if (path / f"Y.{short}.npz").is_file():
            splits[name] = read_pecos_split(path, short)
    names_file = find_file(path, *NAMES)
    names = list(lines_of(names_file)) if names_file else None
    widths = {split.Y.shape[1] for split in splits.values() if split.Y is not None}
    if len(widths) > 1:
        raise TreetopError(f"{path}: splits differ in their number of labels: {sorted(widths)}")
    if names is not None:
        check_label_names(names_file, names, widths.pop())
    return Dataset(NAME, splits, names).same_width()


def read_pecos_split(path: Path, short: str) -> Split:
    """One split, by its texts if there are any, else by its features."""
    Y = clean_labels(load_matrix(path / f"Y.{short}.npz"))
    texts_file = find_file(path, f"X.{short}.txt")
    if texts_file is not None:
        texts = list(lines_of(texts_file))
        if len(texts) != Y.shape[0]:
            raise TreetopError(f"{texts_file}: {len(texts)} lines for {Y.shape[0]} rows of labels")
        return Split(texts, None, None, Y)
    X = load_matrix(path / f"X.{short}.npz")
    if X.shape[0] != Y.shape[0]:
        raise TreetopError(f"{path}: X.{short}.npz has {X.shape[0]} rows, Y.{short}.npz {Y.shape[0]}")
    return Split(None, None, X, Y)


def load_matrix(path: Path) -> sp.csr_matrix:
    """A scipy matrix saved by `save_npz`; pickled content is refused."""
    if not path.is_file():
        raise TreetopError(f"{path}: missing")
    try:
        with np.load(path, allow_pickle=False) as file:
            parts = {name: file[name] for name in file.files}
        kind = parts["format"].item()
        kind = kind.decode() if isinstance(kind, bytes) else str(kind)
        shape = tuple(parts["shape"].tolist())
        inner = (parts["data"], parts["indices"], parts["indptr"])
        made = {"csr": sp.csr_matrix, "csc": sp.csc_matrix}[kind](inner, shape=shape)
        return sp.csr_matrix(made)
    except (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise TreetopError(f"{path}: not a sparse matrix saved by scipy ({error})") from None


def write(dataset: Dataset, folder: Path) -> None:
    """Texts or features of each split, labels as matrices, and the labels' names."""
    dataset = dataset.with_matrices()
    check_characters([dataset.label_names or []], NAME, "\n\r")
    for name, split in dataset.splits.items():
        if split.Y is None:
            raise TreetopError(f"{NAME} holds labels, and the split {name} has none")
        if split.texts is not None:
            write_lines(folder / f"X.{SHORT[name]}.txt", lines_of_text(split, NAME))
        if split.X is not None:
            sp.save_npz(folder / f"X.{SHORT[name]}.npz", sp.csr_matrix(split.X))
        sp.save_npz(folder / f"Y.{SHORT[name]}.npz", sp.csr_matrix(split.Y))
    write_lines(folder / NAMES[0], dataset.label_names or [])
