"""XMLRepo with two files per split: ``trn_X_Xf.txt`` with features, ``trn_X_Y.txt`` with labels.

Both have a header of two numbers and ``column:value`` pairs. ``filter_labels_{train,test}.txt`` lists
pairs of document and label that are left out of evaluation.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse as sp

from treetop.data.dataset import Dataset, Split, clean_labels
from treetop.data.files import find_file, first_line, lines_of, write_lines
from treetop.data.holding import check_characters, sparse_features_of
from treetop.data.labelnames import with_names_of
from treetop.data.options import ReadOptions
from treetop.data.pairs import features_in, read_rows, sparse_lines
from treetop.data.reading import Recognized
from treetop.data.xmlrepo import NAMES, check_documents, header_numbers, names_file
from treetop.errors import TreetopError

NAME = "xmlrepo-split"
USES = ("merge_duplicates",)
ABOUT = "XMLRepo in two files: trn_X_Xf.txt with features, trn_X_Y.txt with labels"
SHORT = {"train": "trn", "dev": "val", "test": "tst"}


def matches(path: Path) -> bool:
    """Whether a folder is of this format."""
    return path.is_dir() and any(find_file(path, f"{short}_X_Xf.txt") for short in SHORT.values())


def read(path: Path, options: ReadOptions) -> Dataset:
    """Read all splits."""
    splits, files = {}, []
    for name, short in SHORT.items():
        features, labels = (find_file(path, f"{short}_X_{kind}.txt") for kind in ("Xf", "Y"))
        if features is not None:
            splits[name] = read_two_files(path, name, features, labels)
            files += [file for file in (features, labels) if file is not None]
    dataset = Dataset(NAME, splits, reading=Recognized(files=tuple(files))).same_width()
    return with_names_of(dataset, names_file(path), options)


def read_two_files(folder: Path, name: str, features: Path, labels: Path | None) -> Split:
    """Read one split, with the pairs that are left out of evaluation."""
    X = read_matrix(features, "feature")
    if labels is None:
        return Split(None, None, X, None)
    Y = clean_labels(read_matrix(labels, "label"))
    if X.shape[0] != Y.shape[0]:
        raise TreetopError(
            f"{labels}: {Y.shape[0]:,} documents, but {features.name} has {X.shape[0]:,}"
        )
    return Split(None, None, X, Y, read_filter(folder, name, Y.shape))


def read_matrix(path: Path, what: str) -> sp.csr_matrix:
    """Read a matrix from a file with the header ``rows columns``."""
    header = header_numbers(first_line(path), 2)
    if header is None:
        raise TreetopError(f"{path}:1: the header must be two numbers: documents and {what}s")
    rows = read_rows(path, with_labels=False, header=True)
    check_documents(path, rows.feature_ends.size, header[0])
    return features_in(path, rows, header[1], what)


def read_filter(folder: Path, name: str, shape: tuple[int, int]) -> sp.csr_matrix | None:
    """Pairs of ``filter_labels_train.txt`` or ``filter_labels_test.txt``; None without such a file."""
    path = find_file(folder, f"filter_labels_{name}.txt")
    if path is None:
        return None
    pairs = []
    for number, line in enumerate(lines_of(path), start=1):
        pair = header_numbers(line, 2)
        if pair is None:
            raise TreetopError(f"{path}:{number}: expected two numbers, document and label")
        if pair[0] >= shape[0] or pair[1] >= shape[1]:
            raise TreetopError(
                f"{path}:{number}: document {pair[0]}, label {pair[1]}: the data has "
                f"{shape[0]:,} documents and {shape[1]:,} labels, counted from 0"
            )
        pairs.append(pair)
    cells = np.array(pairs, np.int64).reshape(-1, 2)
    return sp.csr_matrix((np.ones(len(cells), np.float32), (cells[:, 0], cells[:, 1])), shape=shape)


def write(dataset: Dataset, folder: Path) -> None:
    """Write two files per split and one of label names."""
    dataset = dataset.with_matrices()
    check_characters([dataset.label_names or []], NAME, "\n\r")
    for name, split in dataset.splits.items():
        for kind, matrix in (("Xf", sparse_features_of(split, NAME)), ("Y", split.Y)):
            if matrix is not None:
                header = f"{matrix.shape[0]} {matrix.shape[1]}"
                lines = (header, *sparse_lines(matrix, None))
                write_lines(folder / f"{SHORT[name]}_X_{kind}.txt", lines)
        write_filter(folder, name, split)
    write_lines(folder / NAMES[0], dataset.label_names or [])


def write_filter(folder: Path, name: str, split: Split) -> None:
    """Write the pairs that are left out of evaluation, if there are any."""
    if split.excluded is not None:
        cells = split.excluded.tocoo()
        pairs = zip(cells.row.tolist(), cells.col.tolist(), strict=True)
        lines = (f"{row} {column}" for row, column in pairs)
        write_lines(folder / f"filter_labels_{name}.txt", lines)
