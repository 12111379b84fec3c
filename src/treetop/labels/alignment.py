"""Alignment of labels with the columns of a matrix, by name."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from treetop.errors import TreetopError
from treetop.labels.vocabulary import Vocabulary, as_labels, is_label_matrix, label_matrix, not_a_list


def align(
    y: Any,
    classes: Iterable[object],
    columns: Iterable[object] | None = None,
    *,
    unseen: bool = True,
    input_name: str = "labels",
) -> sp.csr_matrix:
    """Convert labels to a matrix whose columns are in the order of `classes`.

    Names are compared as strings: the integer 3, ``np.int64(3)`` and ``"3"`` are the same label.

    Parameters
    ----------
    y : list of lists of names, 1-D array of names, or matrix of shape (N, number of columns)
        Labels of N documents. A 1-D array has one label per document.
    classes : iterable of names
        Names of the L columns to return, in order.
    columns : iterable of names, optional
        Names of the columns of a matrix `y`. If omitted, the matrix must have L columns in the order
        of `classes`.
    unseen : bool
        Whether to keep labels that are not among `classes`. Those that occur follow the L columns,
        sorted by name.
    input_name : str
        Name of `y` in error messages.

    Returns
    -------
    CSR matrix of shape (N, L'), float32
        L' is L plus the number of unseen labels that are kept. Values are those of the matrix `y`,
        or 1.
    """
    if y is None:
        raise TreetopError("requires y to be passed, but the target y is None")
    known = vocabulary(classes)
    y = as_labels(y)
    if is_label_matrix(y):
        return reordered(label_matrix(y), known, columns, unseen, input_name)
    if columns is not None:
        raise TreetopError(f"{input_name}: columns= applies to a matrix, not to lists of label names")
    lines = name_lists(y)
    Y = known.extended(lines).encode(lines)
    return Y if unseen else Y[:, : len(known)]


def align_with_scores(
    y_true: Any, width: int, classes: Iterable[object] | None, columns: Iterable[object] | None
) -> sp.csr_matrix:
    """Align true labels with the `width` columns of a score matrix; unseen labels come last.

    Without `classes`, `y_true` must be a matrix whose columns are in the order of the scores.
    """
    y_true = as_labels(y_true)
    if classes is None:
        if columns is not None:
            raise TreetopError(
                "columns= needs the names of the scores' columns too: give classes=model.classes_"
            )
        if not is_label_matrix(y_true):
            raise TreetopError(
                "y_true is lists of label names: give the names of the scores' columns as "
                "classes=model.classes_ (a matrix must be an array or sparse)"
            )
        classes = range(width)
    classes = list(classes)
    if len(classes) != width:
        raise TreetopError(f"classes= has {len(classes)} names, but the scores have {width} columns")
    return align(y_true, classes, columns, input_name="y_true")


def columns_of(names: Iterable[object], classes: Vocabulary) -> np.ndarray:
    """Return the column number (int64) of each label name; an unknown name is an error."""
    numbers = classes.numbers
    names = list(names)
    for name in names:
        if str(name) not in numbers:
            raise TreetopError(f"label {name!r} is not known to the model")
    return np.array([numbers[str(name)] for name in names], np.int64)


def vocabulary(names: Iterable[object]) -> Vocabulary:
    """Return names of any type as a vocabulary of strings; duplicate names are an error."""
    unique = Vocabulary(map(str, names))
    unique.numbers  # noqa: B018 - raises if a name occurs twice
    return unique


def name_lists(y: Iterable[Iterable[object]]) -> list[list[str]]:
    """Return the label names of each document as strings."""
    one_label_each = isinstance(y, np.ndarray) and all(map(is_name, y))
    return [names_in([line] if one_label_each else line, number) for number, line in enumerate(y)]


def names_in(line: Iterable[object], document: int) -> list[str]:
    """Return the label names of one document as strings."""
    if isinstance(line, str | bytes):
        raise not_a_list(line, document)
    try:
        labels = list(line)
    except TypeError:
        raise not_a_list(line, document) from None
    for label in labels:
        if not is_name(label):
            raise TreetopError(
                f"Unknown label type: label {label!r} is of type {type(label).__name__}, "
                "not a string or a number"
            )
    return list(map(str, labels))


def is_name(label: object) -> bool:
    """Whether an object is a valid label name: a string or a number."""
    return isinstance(label, str | Real | np.bool_)


def reordered(
    Y: sp.csr_matrix,
    known: Vocabulary,
    columns: Iterable[object] | None,
    unseen: bool,
    input_name: str,
) -> sp.csr_matrix:
    """Permute the columns of Y, whose names are `columns`, into the order of `known`."""
    width = Y.shape[1]
    if columns is None:
        if width != len(known):
            raise TreetopError(
                f"{input_name}: {width} columns, expected {len(known)}: give lists of label names, or "
                "the names of the columns (columns= and classes= of treetop.metrics.evaluate)"
            )
        return Y
    names = vocabulary(columns).names
    if len(names) != width:
        raise TreetopError(f"{input_name}: {width} columns, but columns= has {len(names)} names")
    occurring = [[names[column] for column in np.unique(Y.indices)]]
    order = known.extended(occurring) if unseen else known
    position = np.array([order.numbers.get(name, -1) for name in names], np.int64)
    cells = Y.tocoo()
    kept = position[cells.col] >= 0
    positions = (cells.row[kept], position[cells.col[kept]])
    return sp.csr_matrix((cells.data[kept], positions), shape=(Y.shape[0], len(order)))
