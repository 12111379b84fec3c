"""The documents passed to an estimator: texts, a matrix of features, or texts with features."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from treetop.errors import TreetopError
from treetop.features.hybrid import Features, features
from treetop.runtime.checking import check_sparse
from treetop.runtime.frames import column_names, listed

# Kinds of numpy types: numbers, and those of arrays of texts.
NUMBERS, TEXTS = "biuf", "OUT"


@dataclass(frozen=True)
class TextsWithFeatures:
    """Texts, and precomputed features of each. A model takes from it what it was trained on."""

    texts: Sequence[str]
    X: Features

    def __len__(self) -> int:
        return self.X.rows

    def __getitem__(self, rows: slice) -> TextsWithFeatures:
        return TextsWithFeatures(self.texts[rows], self.X[rows])


def with_features(X: Any, ready: Any) -> Any:
    """`X`, together with its precomputed features if there are any; the texts are copied then."""
    if ready is None:
        return X
    if isinstance(X, TextsWithFeatures) or not is_text(X):
        raise TreetopError(
            "features= is for texts, but X is a matrix of features: give either texts with features=, "
            "or a matrix alone"
        )
    texts, rows = list(python_texts(X)), read_features(ready)
    if rows.rows != len(texts):
        raise TreetopError(
            f"{len(texts):,} texts, but features has {rows.rows:,} rows: give one row per text"
        )
    return TextsWithFeatures(texts, rows)


def parts_of(documents: Any) -> tuple[Iterable[str] | None, Any]:
    """The texts and the matrix of features of documents; None for what they do not have."""
    if isinstance(documents, TextsWithFeatures):
        return documents.texts, documents.X
    return (python_texts(documents), None) if is_text(documents) else (None, documents)


def is_text(X: object) -> bool:
    """Whether X is a collection of texts; False for matrices of features.

    What is neither, or has no order, is an error.
    """
    if isinstance(X, str | bytes):
        raise TreetopError("X is one string: pass a list of texts")
    if isinstance(X, Features) or sp.issparse(X):
        return False
    if isinstance(X, np.ndarray):
        return X.ndim == 1 and X.dtype.kind in TEXTS
    if isinstance(X, set | frozenset):
        raise TreetopError("X is a set, which has no order: pass a list of texts")
    if (columns := column_names(X)) is not None:
        check_numeric_table(X, columns)
        return False
    if isinstance(X, list | tuple):
        return not holds_rows_of_numbers(X)
    return not (hasattr(X, "__array__") and np.asarray(X).dtype.kind in NUMBERS)


def check_numeric_table(X: object, columns: list[Any]) -> None:
    """Raise unless a table holds nothing but numbers: it would be iterated by its column names."""
    numeric = hasattr(X, "__array__") and np.asarray(X).dtype.kind in NUMBERS
    if not numeric:
        raise TreetopError(
            f"X is a table with the columns {listed(columns)}: pass one column of texts, such as "
            f"X[{columns[0] if columns else 'text'!r}], or a table of numbers"
        )


def feature_names(X: object) -> tuple[str, ...]:
    """The column names of a table; none of anything else, or if the names are not strings."""
    names = None if isinstance(X, Features) or sp.issparse(X) else column_names(X)
    return tuple(names) if names and all(isinstance(name, str) for name in names) else ()


def check_feature_names(X: object, expected: tuple[str, ...]) -> None:
    """Raise if the columns of a table are not those that a model was trained on, in the same order."""
    names = feature_names(X)
    if not names or not expected or len(names) != len(expected) or names == expected:
        return
    position = next(at for at in range(len(names)) if names[at] != expected[at])
    raise TreetopError(
        f"X has the column {names[position]!r} where the model was trained on {expected[position]!r}: "
        "give the same columns in the same order, as in X[model.feature_names_in_]"
    )


def holds_rows_of_numbers(X: list[Any] | tuple[Any, ...]) -> bool:
    """Whether a list is a matrix of features, row by row."""
    if not X or not isinstance(X[0], list | tuple | np.ndarray):
        return False
    try:
        array = np.asarray(X)
    except ValueError:  # rows of different lengths
        return False
    return array.ndim == 2 and array.dtype.kind in NUMBERS


def python_texts(X: Iterable[Any]) -> Iterable[str]:
    """Return texts as an iterable of Python strings; an Arrow column yields its own type of strings."""
    return X.to_pylist() if hasattr(X, "to_pylist") else X


def read_features(X: object) -> Features:
    """Features from a sparse matrix, a dense array (documents x features), or `Features`."""
    if isinstance(X, Features):
        return X
    if sp.issparse(X):
        check_sparse(X, "X")
        return features(X)
    array = np.asarray(X)
    if array.dtype.kind == "c":
        raise TreetopError("Complex data not supported")
    if array.ndim != 2:
        raise TreetopError(
            f"Expected 2D array, got {array.ndim}D array instead. Reshape your data: X must be a "
            "list of texts or a matrix with one row per document"
        )
    try:
        numbers = array.astype(np.float32)
    except ValueError:
        raise TreetopError(
            "X is a matrix that holds texts: pass one column of it, or a matrix of numbers"
        ) from None
    return features(dense=numbers)


def read_features_like(X: object, widths: tuple[int, int]) -> Features:
    """Features with `widths` columns in the sparse and the dense half, if X has as many in all.

    A model that was trained on a dense matrix takes a sparse one, and the other way round.
    """
    given = read_features(X)
    if given.widths == widths or sum(given.widths) != sum(widths) or all(given.widths):
        return given
    if given.widths[0]:
        sparse, dense = given.sparse[:, : widths[0]], given.sparse[:, widths[0] :].toarray()
    else:
        sparse, dense = sp.csr_matrix(given.dense[:, : widths[0]]), given.dense[:, widths[0] :]
    return features(sparse, dense)
