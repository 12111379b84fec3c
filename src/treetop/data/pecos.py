"""PECOS's folders: ``X.trn.npz``, ``Y.trn.npz`` (scipy matrices), texts and label names if there."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from treetop.data.dataset import Dataset, Split
from treetop.data.files import find, lines_of
from treetop.errors import TreetopError

SPLITS = {"train": "trn", "dev": "val", "test": "tst"}
NAMES = ("output-items.txt", "Y.txt", "labels.txt")


def matches(path: Path) -> bool:
    """Whether a folder holds this format."""
    return path.is_dir() and any((path / f"Y.{short}.npz").is_file() for short in SPLITS.values())


def read(path: Path) -> Dataset:
    """All splits that are there."""
    splits = {}
    for name, short in SPLITS.items():
        if (path / f"Y.{short}.npz").is_file():
            splits[name] = read_split(path, short)
    names_file = find(path, *NAMES)
    names = list(lines_of(names_file)) if names_file else None
    widths = {split.Y.shape[1] for split in splits.values() if split.Y is not None}
    if len(widths) > 1:
        raise TreetopError(f"{path}: splits differ in their number of labels: {sorted(widths)}")
    if names is not None and {len(names)} != widths:
        raise TreetopError(
            f"{names_file}: {len(names)} label names, the label matrices have {widths.pop()} columns"
        )
    return Dataset("PECOS", splits, names)


def read_split(path: Path, short: str) -> Split:
    """One split, by its texts if there are any, else by its features."""
    Y = load_matrix(path / f"Y.{short}.npz")
    texts_file = find(path, f"X.{short}.txt")
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
