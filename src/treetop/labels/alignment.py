"""Alignment of labels with the columns of a matrix, by name."""

from __future__ import annotations

from collections.abc import Container, Iterable

import numpy as np
import scipy.sparse as sp

from treetop.errors import TreetopError
from treetop.labels.given import GivenLabels, check_names_in, given_labels
from treetop.labels.types import plain_label
from treetop.labels.vocabulary import Vocabulary, label_matrix


def align(
    y: object,
    classes: Iterable[object],
    columns: Iterable[object] | None = None,
    *,
    unseen: bool = True,
    input_name: str = "labels",
) -> sp.csr_matrix:
    """Convert labels to a matrix whose columns are in the order of `classes`.

    Names are compared as strings: the integer 3, ``np.int64(3)`` and ``"3"`` are the same label. The
    float 3.0 is too, if no label is called ``"3.0"``: pandas makes floats of integers.

    Parameters
    ----------
    y : list of lists of names, list or 1-D array of names, or matrix of shape (N, number of columns)
        Labels of N documents. A list or 1-D array of names has one label per document.
    classes : iterable of names
        Names of the L columns to return, in order.
    columns : iterable of names, optional
        Names of the columns of a matrix `y`. If omitted, the matrix must have L columns in the order
        of `classes`, or be a table whose columns are named.
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
    Y, known = aligned(y, vocabulary(classes), columns, unseen, input_name)
    return Y if unseen else Y[:, : len(known)]


def aligned(
    y: object, known: Vocabulary, columns: Iterable[object] | None, unseen: bool, input_name: str
) -> tuple[sp.csr_matrix, Vocabulary]:
    """`align`, and the names of the columns; without `unseen`, those of `known`."""
    given = given_labels(y, input_name, known.numbers.__contains__)
    if given.matrix is not None:
        columns = given.columns if columns is None else columns
        return reordered(label_matrix(given.matrix), known, columns, unseen, input_name)
    if columns is not None:
        raise TreetopError(f"{input_name}: columns= applies to a matrix, not to lists of label names")
    lines = spelled_lists(given, known)
    order = known.extended(lines)
    return order.encode(lines), order if unseen else known


def align_with_scores(
    y_true: object, width: int, classes: Iterable[object] | None, columns: Iterable[object] | None
) -> tuple[sp.csr_matrix, Vocabulary]:
    """Align true labels with the `width` columns of a score matrix; unseen labels come last.

    Without `classes`, `y_true` must be a matrix whose columns are in the order of the scores. Returns
    the names of the columns too.
    """
    if classes is None:
        if columns is not None:
            raise TreetopError(
                "columns= needs the names of the scores' columns too: give classes=model.classes_"
            )
        given = given_labels(y_true, "y_true")
        if given.matrix is None:
            raise TreetopError(
                "y_true is lists of label names: give the names of the scores' columns as "
                "classes=model.classes_ (a matrix must be an array or sparse)"
            )
        y_true = given.matrix
        classes = range(width)
    classes = list(classes)
    if len(classes) != width:
        raise TreetopError(f"classes= has {len(classes)} names, but the scores have {width} columns")
    return aligned(y_true, vocabulary(classes), columns, True, "y_true")


def columns_of(names: Iterable[object], classes: Vocabulary) -> np.ndarray:
    """Return the column number (int64) of each label name; an unknown name is an error."""
    if isinstance(names, str | bytes):
        raise TreetopError(f"{names!r} is one string: give a list of label names")
    numbers = classes.numbers
    names = list(names)
    for name in names:
        if spelled(name, numbers) not in numbers:
            raise TreetopError(f"label {name!r} is not known to the model")
    return np.array([numbers[spelled(name, numbers)] for name in names], np.int64)


def vocabulary(names: Iterable[object]) -> Vocabulary:
    """Return names of any type as a vocabulary of strings; duplicate names are an error."""
    unique = Vocabulary(str(plain_label(name)) for name in names)
    unique.numbers  # noqa: B018 - raises if a name occurs twice
    return unique


def spelled_lists(given: GivenLabels, known: Vocabulary) -> list[list[str]]:
    """Return the label names of each document as strings, as `known` spells them."""
    if given.one_each is not None:
        return [[spelled(name, known.numbers)] for name in given.one_each.tolist()]
    assert given.lists is not None
    if check_names_in(given.lists) <= {str}:
        return given.lists
    return [[spelled(name, known.numbers) for name in names] for names in given.lists]


def spelled(name: object, numbers: Container[str]) -> str:
    """Return a label name as a string: of the spellings of a number the one that is in `numbers`."""
    plain = plain_label(name)
    if isinstance(plain, float) and plain.is_integer():
        other = str(int(plain))
    elif isinstance(plain, int) and not isinstance(plain, bool) and abs(plain) <= 2**53:
        other = str(float(plain))
    else:
        return str(plain)
    return other if other in numbers and str(plain) not in numbers else str(plain)


def reordered(
    Y: sp.csr_matrix,
    known: Vocabulary,
    columns: Iterable[object] | None,
    unseen: bool,
    input_name: str,
) -> tuple[sp.csr_matrix, Vocabulary]:
    """Permute the columns of Y, whose names are `columns`, into the order of `known`.

    Returns the names of the resulting columns too.
    """
    width = Y.shape[1]
    if columns is None:
        if width != len(known):
            raise TreetopError(
                f"{input_name}: {width} columns, expected {len(known)}: give lists of label names, or "
                "the names of the columns (columns= and classes= of treetop.metrics.evaluate)"
            )
        return Y, known
    names = vocabulary(columns).names
    if len(names) != width:
        raise TreetopError(f"{input_name}: {width} columns, but columns= has {len(names)} names")
    occurring = [[names[column] for column in np.unique(Y.indices)]]
    order = known.extended(occurring) if unseen else known
    position = np.array([order.numbers.get(name, -1) for name in names], np.int64)
    cells = Y.tocoo()
    kept = position[cells.col] >= 0
    positions = (cells.row[kept], position[cells.col[kept]])
    return sp.csr_matrix((cells.data[kept], positions), shape=(Y.shape[0], len(order))), order
