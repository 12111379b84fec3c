"""PECOS folders: ``X.trn.txt`` or ``X.trn.npz``, ``Y.trn.npz`` (scipy matrices), label names."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from treetop.data.dataset import Dataset, Split, check_label_names, clean_labels
from treetop.data.files import find_file, lines_of, write_lines
from treetop.data.holding import check_characters, label_matrix_of, lines_of_text
from treetop.data.options import ReadOptions
from treetop.data.xmlrepo_split import SHORT
from treetop.errors import TreetopError

NAME = "pecos"
ABOUT = "a PECOS folder: X.trn.txt or X.trn.npz, Y.trn.npz, output-items.txt"
NAMES = ("output-items.txt", "Y.txt", "labels.txt")


def matches(path: Path) -> bool:
    """Whether a folder is of this format."""
    return path.is_dir() and any((path / f"Y.{short}.npz").is_file() for short in SHORT.values())


def read(path: Path, options: ReadOptions) -> Dataset:
    """Read all splits."""
    splits = {}
    for name, short in SHORT.items():
        if (path / f"Y.{short}.npz").is_file():
            splits[name] = read_pecos_split(path, short)
    names_file = find_file(path, *NAMES)
    names = list(lines_of(names_file)) if names_file else None
    widths = {split.Y.shape[1] for split in splits.values() if split.Y is not None}
    if len(widths) > 1:
        raise TreetopError(f"{path}: the splits have different numbers of labels: {sorted(widths)}")
    if names is not None:
        check_label_names(names_file, names, widths.pop())
    return Dataset(NAME, splits, names).same_width()


def read_pecos_split(path: Path, short: str) -> Split:
    """Read one split, with texts if there are any, else with features."""
    Y = clean_labels(load_matrix(path / f"Y.{short}.npz"))
    texts_file = find_file(path, f"X.{short}.txt")
    if texts_file is not None:
        texts = list(lines_of(texts_file))
        if len(texts) != Y.shape[0]:
            raise TreetopError(
                f"{texts_file}: {len(texts)} lines, but Y.{short}.npz has {Y.shape[0]} rows"
            )
        return Split(texts, None, None, Y)
    X = load_matrix(path / f"X.{short}.npz")
    if X.shape[0] != Y.shape[0]:
        raise TreetopError(
            f"{path}: X.{short}.npz has {X.shape[0]} rows, but Y.{short}.npz has {Y.shape[0]}"
        )
    return Split(None, None, X, Y)


def load_matrix(path: Path) -> sp.csr_matrix:
    """Read a matrix saved by `scipy.sparse.save_npz`; pickled content is refused."""
    if not path.is_file():
        raise TreetopError(f"{path}: missing")
    try:
        with np.load(path, allow_pickle=False) as file:
            parts = {name: file[name] for name in file.files}
        form = parts["format"].item()
        form = form.decode() if isinstance(form, bytes) else str(form)
        arrays = (parts["data"], parts["indices"], parts["indptr"])
        matrix = {"csr": sp.csr_matrix, "csc": sp.csc_matrix}[form]
        return sp.csr_matrix(matrix(arrays, shape=tuple(parts["shape"].tolist())))
    except (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise TreetopError(f"{path}: not a sparse matrix saved by scipy ({error})") from None


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
