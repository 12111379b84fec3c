"""Conversion and validation of the arguments of `fit`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp

from treetop.errors import TreetopError
from treetop.features.given import feature_names, parts_of, read_features
from treetop.features.hybrid import Features
from treetop.labels.given import check_names_in, given_labels
from treetop.labels.types import check_names, name_array, plain_label
from treetop.labels.vocabulary import label_matrix, vocabulary_of
from treetop.model.feature_names import FeatureNames


def read_labels(y: object, label_names: Iterable[object] | None) -> tuple[sp.csr_matrix, np.ndarray]:
    """Return Y, CSR float32 of shape (N, L), and the label names, from any form that `fit` accepts."""
    given = given_labels(y)
    if given.matrix is not None:
        Y = label_matrix(given.matrix)
        names = column_labels(Y.shape[1], given.columns if label_names is None else label_names)
        classes = name_array(names)
    elif label_names is not None:
        raise TreetopError(
            "label_names= names the columns of a matrix, but y holds label names: leave it out (for "
            "column numbers, give [label_names[number] for number in y])"
        )
    elif given.one_each is not None:
        Y, classes = one_label_each(given.one_each)
    else:
        assert given.lists is not None
        vocabulary = vocabulary_of(given.lists)
        check_names(vocabulary.names)  # NaN is in no vocabulary
        Y, classes = vocabulary.encode(given.lists), name_array(vocabulary.names)
    check_names(classes.tolist())
    if Y.nnz == 0:
        raise TreetopError("no document has a label")
    return Y, classes


def column_labels(columns: int, names: Iterable[object] | None) -> list[Any]:
    """Return the plain names of the columns of a label matrix: by default ``"0"``, ``"1"``, …."""
    if names is None:
        return [str(number) for number in range(columns)]
    if isinstance(names, str | bytes | set | frozenset):
        raise TreetopError(
            f"label_names is a {type(names).__name__}: give a list of one name per column"
        )
    listed = list(names)
    if len(listed) != columns:
        raise TreetopError(f"{len(listed)} label names for {columns} columns of labels")
    check_names_in([listed])
    return [plain_label(name) for name in listed]


def one_label_each(y: np.ndarray) -> tuple[sp.csr_matrix, np.ndarray]:
    """Return Y and the classes of an array with one number or boolean per document."""
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise TreetopError("Input y contains NaN or infinity: leave out documents without a label")
    classes, numbers = np.unique(y, return_inverse=True)
    cells = (np.ones(y.size, np.float32), numbers, np.arange(y.size + 1))
    Y = sp.csr_matrix(cells, shape=(y.size, classes.size))
    return Y, name_array([plain_label(name) for name in classes])


def read_feature_names(names: Iterable[Any] | None, documents: object) -> FeatureNames | None:
    """Return the names of the columns of the features of documents; None without names.

    Those of a table are the names of its columns.
    """
    _, ready = parts_of(documents)
    names = feature_names(ready) or None if names is None else names
    if names is None:
        return None
    if ready is None:
        raise TreetopError(
            "feature_names= names the columns of a matrix of features, but there are texts alone: "
            "leave it out, or give features="
        )
    return FeatureNames.of(names, sum(read_features(ready).widths))


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


def read_weights(weights: object, documents: int) -> np.ndarray | None:
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
