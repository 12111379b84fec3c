"""Labels as users pass them: a matrix, or lists of names; anything else is an error of one line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from treetop.errors import TreetopError
from treetop.labels.separators import LabelReading, label_reading
from treetop.labels.types import NAME_TYPES, is_absent, is_name, not_a_name
from treetop.runtime.checking import check_sparse
from treetop.runtime.frames import column_names, listed

NUMBER_TYPES = (bool, int, float, np.integer, np.floating, np.bool_)
# Texts such as "['a', 'b']" are lists written as text if at least this share of all are.
WRITTEN_LISTS = 0.5
# So many of the strings must be known labels, and they are not divided.
KNOWN = 0.5


@dataclass(frozen=True)
class GivenLabels:
    """Labels of N documents: a matrix, or a list of names per document."""

    matrix: Any = None  # array or sparse matrix of shape (N, columns)
    columns: list[Any] | None = None  # names of the columns, if the matrix has any
    lists: list[list[Any]] | None = None
    one_each: np.ndarray | None = None  # instead of lists: one number or boolean per document


def given_labels(
    y: object, input_name: str = "y", is_known: Callable[[str], bool] | None = None
) -> GivenLabels:
    """Tell what labels are.

    Parameters
    ----------
    y : list of lists of names, list or 1-D array of names, matrix, or table of numbers
        Labels of N documents. A 1-D array or a list of names has one label per document.
    input_name : str
        Name of `y` in error messages.
    is_known : callable, optional
        Tells whether a string is one of a model's labels: then it is not meant to be divided.
    """
    if y is None:
        raise TreetopError("requires y to be passed, but the target y is None")
    if isinstance(y, str | bytes):
        raise TreetopError(f"{input_name} is one string: give a list of labels per document")
    if isinstance(y, set | frozenset):
        raise TreetopError(f"{input_name} is a set, which has no order: give a list per document")
    if (columns := column_names(y)) is not None:
        return given_table(y, columns, input_name)
    if sp.issparse(y):
        check_sparse(y, input_name)
        return GivenLabels(matrix=y)
    if hasattr(y, "__array__"):
        return given_array(np.asarray(y), input_name, is_known)
    if not isinstance(y, Iterable):
        raise TreetopError(f"{input_name} is {y!r}: give a list of labels per document")
    return given_lists(list(y), input_name, is_known)


def given_table(y: object, columns: list[Any], input_name: str) -> GivenLabels:
    """Tell what a table is: a column of 0/1 or relevances per label, named by the column."""
    values = None if isinstance(y, Mapping) else numbers_of(y)
    if values is None:
        raise TreetopError(
            f"{input_name} is a table with the columns {listed(columns)}: give one column of labels, "
            f"such as y[{columns[0] if columns else 'labels'!r}], or a table of 0 and 1 with a column "
            "per label"
        )
    numbered = columns == list(range(len(columns)))  # the columns have no names
    return GivenLabels(matrix=values, columns=None if numbered else columns)


def numbers_of(table: object) -> np.ndarray | None:
    """The numbers of a table as an array; None if it holds anything else, also a missing value."""
    if not hasattr(table, "__array__"):
        return None
    values = np.asarray(table)
    if values.dtype.kind == "O" and all(isinstance(v, NUMBER_TYPES) for v in values.flat):
        values = values.astype(np.float64)  # pandas has types of numbers that numpy lacks
    return values if values.dtype.kind in "biuf" else None


def given_array(y: np.ndarray, input_name: str, is_known: Callable[[str], bool] | None) -> GivenLabels:
    """Tell what an array is: a matrix of numbers, rows of names, or one label per document."""
    if y.dtype.kind == "c":
        raise TreetopError("Complex data not supported")
    if y.ndim == 2 and not holds_strings(y):
        return GivenLabels(matrix=y)
    if y.ndim not in (1, 2):
        raise TreetopError(f"{input_name} has shape {y.shape}: give a list of labels per document")
    if y.ndim == 1 and y.dtype.kind in "biuf":
        return GivenLabels(one_each=y)
    return given_lists(list(y), input_name, is_known)


def holds_strings(y: np.ndarray) -> bool:
    """Whether an array holds strings."""
    return y.dtype.kind in "US" or (y.dtype.kind == "O" and any(isinstance(v, str) for v in y.flat))


def given_lists(
    rows: list[Any], input_name: str, is_known: Callable[[str], bool] | None
) -> GivenLabels:
    """Tell what rows are: names, one per document, or lists of names."""
    single = [number for number, row in enumerate(rows) if isinstance(row, NAME_TYPES)]
    absent = [number for number in range(len(rows)) if is_absent(rows[number])] if single else []
    if absent:
        raise not_a_list(rows[absent[0]], absent[0])
    if rows and len(single) == len(rows):
        check_single(rows, input_name, is_known)
        return GivenLabels(lists=[[name] for name in rows])
    lists = [names_of(row, number) for number, row in enumerate(rows)]
    check_not_a_matrix(lists, input_name)
    return GivenLabels(lists=lists)


def names_of(row: Any, document: int) -> list[Any]:
    """Return the labels of one document as a list."""
    if isinstance(row, str | bytes | Mapping):
        raise not_a_list(row, document)
    try:
        return row if isinstance(row, list) else list(row)
    except TypeError:
        raise not_a_list(row, document) from None


def check_single(
    rows: Sequence[object], input_name: str, is_known: Callable[[str], bool] | None
) -> None:
    """Raise if strings look like several labels each, by the evidence that files are read by."""
    strings = [row for row in rows if isinstance(row, str)]
    if not strings or (is_known and sum(map(is_known, strings)) >= KNOWN * len(strings)):
        return
    written = [text for text in strings if text.startswith("[") and text.endswith("]")]
    if len(written) >= WRITTEN_LISTS * len(strings):
        raise TreetopError(
            f"{input_name} holds lists written as text, such as {written[0]!r}: parse each with "
            "ast.literal_eval or json.loads"
        )
    reading = label_reading(strings)
    if reading.separator is not None or reading.ambiguous:
        raise several_labels(strings, reading, input_name)


def several_labels(strings: list[str], reading: LabelReading, input_name: str) -> TreetopError:
    """Return the error for strings that are probably several labels each."""
    separator = reading.separator or reading.plausible[0]
    example = next(text for text in strings if separator in text)
    spaced = all(text.count(separator) == text.count(f"{separator} ") for text in strings)
    glue = f"{separator} " if spaced else separator
    return TreetopError(
        f"{input_name} has one string per document, and strings such as {example!r} may be several "
        f"labels: give lists, with {input_name}.str.split({glue!r}) or [row.split({glue!r}) for row in "
        f"{input_name}]; or [[row] for row in {input_name}] if each string is one label"
    )


def check_not_a_matrix(lists: list[list[Any]], input_name: str) -> None:
    """Raise if lists of numbers look like the rows of a matrix, as they are to scikit-learn."""
    width = len(lists[0]) if lists else 0
    if width < 2 or any(len(names) != width for names in lists):
        return
    types = {type(name) for names in lists for name in names}
    if any(issubclass(kind, str) or not issubclass(kind, NAME_TYPES) for kind in types):
        return
    whole = not any(issubclass(kind, float | np.floating) for kind in types)
    if whole and not {name for names in lists for name in names} <= {0, 1}:
        return
    raise TreetopError(
        f"{input_name} is lists of numbers that look like rows of a matrix: give a matrix as an array, "
        f"np.array({input_name}), or label names as strings"
    )


def check_names_in(lists: Iterable[Iterable[Any]]) -> set[type]:
    """Return the types of all names in lists; anything that is not a name is an error."""
    types: set[type] = set()
    for names in lists:
        types.update(map(type, names))
    if not all(issubclass(kind, NAME_TYPES) for kind in types):
        raise not_a_name(next(name for names in lists for name in names if not is_name(name)))
    return types


def not_a_list(row: object, document: int) -> TreetopError:
    """Return the error for a document whose labels are not a list of names."""
    if isinstance(row, str):
        return TreetopError(
            f"labels of document {document} are the string {row!r}: give a list of names"
        )
    return TreetopError(
        f"Unknown label type: labels of document {document} are {row!r}: give a list of names, "
        "[] for a document without labels"
    )
