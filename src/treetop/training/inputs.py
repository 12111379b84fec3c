"""Conversion and validation of the arguments of `fit`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from treetop.errors import TreetopError
from treetop.features.hybrid import Features
from treetop.labels.vocabulary import as_labels, is_label_matrix, label_matrix, vocabulary_of


def read_labels(y: Any, label_names: Sequence[str] | None) -> tuple[sp.csr_matrix, np.ndarray]:
    """Return Y, CSR float32 of shape (N, L), and the label names, from any form that `fit` accepts."""
    if isinstance(y, np.ndarray) and y.dtype.kind == "c":
        raise TreetopError("Complex data not supported")
    if y is None:
        raise TreetopError("requires y to be passed, but the target y is None")
    y = as_labels(y)
    if is_label_matrix(y):
        Y = label_matrix(y)
        names = label_names if label_names is not None else range(Y.shape[1])
        if len(names) != Y.shape[1]:
            raise TreetopError(f"{len(names)} label names for {Y.shape[1]} columns of labels")
        classes = np.array([str(name) for name in names], dtype=object)
    elif isinstance(y, np.ndarray) and y.ndim == 1 and (single := one_label_each(y)) is not None:
        return single
    else:
        lines = [list(line) if hasattr(line, "__next__") else line for line in y]  # iterators, once
        vocabulary = vocabulary_of(lines)
        Y, classes = vocabulary.encode(lines), np.array(vocabulary.names, dtype=object)
    check_names(classes)
    if Y.nnz == 0:
        raise TreetopError("no document has a label")
    return Y, classes


def one_label_each(y: np.ndarray) -> tuple[sp.csr_matrix, np.ndarray] | None:
    """Return Y and the classes of an array with one label per document; None for other arrays."""
    if y.dtype.kind == "O" and y.size and all(isinstance(name, str) for name in y):
        y = y.astype(str)
    if y.dtype.kind not in "biufUS":
        return None
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise TreetopError("Input y contains NaN or infinity")
    classes, numbers = np.unique(y, return_inverse=True)
    if y.dtype.kind == "U":
        check_names(classes)
    cells = (np.ones(y.size, np.float32), numbers, np.arange(y.size + 1))
    return sp.csr_matrix(cells, shape=(y.size, classes.size)), classes


def check_names(names: np.ndarray) -> None:
    """Raise unless label names are unique and each fits on one line of labels.txt."""
    if len(set(names)) != len(names):
        raise TreetopError("label names must differ from each other")
    for name in names:
        if "\n" in name:
            raise TreetopError(f"label {str(name)!r} contains a line break")


def check_rows(X: Features, Y: sp.csr_matrix) -> None:
    """Raise unless X and Y have the same number of rows, and X has at least one row and column."""
    if X.rows == 0:
        raise TreetopError("there are no documents")
    if X.sparse.shape[1] + X.dense.shape[1] == 0:
        raise TreetopError(f"0 feature(s) (shape=({X.rows}, 0)) while a minimum of 1 is required.")
    check_count(X.rows, Y)


def check_count(documents: int, Y: sp.csr_matrix, source: str = "") -> None:
    """Raise unless there are as many documents as rows of Y; `source` begins the message."""
    if documents != Y.shape[0]:
        raise TreetopError(
            f"{source}{documents} documents but labels for {Y.shape[0]}: "
            "inconsistent numbers of samples"
        )


def read_weights(weights: Any, documents: int) -> np.ndarray | None:
    """Return the weights of the documents, float32 and not negative; None if all are 1."""
    if weights is None:
        return None
    values = np.asarray(weights, np.float32).ravel()
    if values.size != documents:
        raise TreetopError(f"{values.size} weights for {documents} documents")
    if not np.isfinite(values).all() or (values < 0).any():
        raise TreetopError("sample_weight: weights must be finite and not negative")
    if not values.any():
        raise TreetopError("sample_weight: every weight is zero")
    return None if (values == 1).all() else values
