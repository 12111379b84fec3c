"""Weights by feature as a search reads them, and the rows of its documents."""

from typing import NamedTuple

import numpy as np

from treetop.kernels import const, f4, helper, i4, i8, u2

# Types of weights by feature: starts, rows, cells, form; then of all weights.
row_types = (const(i8, 2), const(i4, 2), const(u2), const(i8))
weight_types = (*row_types, const(f4), const(f4), const(i8), const(i8))


class DocumentRows(NamedTuple):
    """Rows of both halves."""

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    dense: np.ndarray


class SearchWeights(NamedTuple):
    """All weights, and the tree they belong to: see `weight_types`."""

    starts: np.ndarray
    rows: np.ndarray
    cells: np.ndarray
    form: np.ndarray
    dense: np.ndarray
    biases: np.ndarray
    child_ptr: np.ndarray
    level_ptr: np.ndarray


@helper
def largest_of(numbers):
    """The largest number, 0 if there is none; numba's own `max` would import scipy.linalg on load."""
    largest = np.int64(0)
    for number in numbers:
        largest = max(largest, number)
    return largest


@helper
def longest_row(indptr, first_row, last_row):
    """The most features that one of the documents has."""
    longest = np.int64(0)
    for row in range(first_row, last_row):
        longest = max(longest, indptr[row + 1] - indptr[row])
    return longest
