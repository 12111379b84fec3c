"""Label names and their column numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from treetop.errors import TreetopError


class Vocabulary:
    """Label names in a fixed order."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = list(names)

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each name, computed on first use because prediction does not need it."""
        numbers = {name: number for number, name in enumerate(self.names)}
        if len(numbers) != len(self.names):
            duplicate = next(name for name, count in Counter(self.names).items() if count > 1)
            raise TreetopError(f"label names must differ from each other: {duplicate!r} occurs twice")
        return numbers

    def extended(self, labels: Iterable[Iterable[str]]) -> Vocabulary:
        """Return this vocabulary with the unknown names in `labels` appended, sorted."""
        unknown = {name for line in labels for name in line if name not in self.numbers}
        return Vocabulary([*self.names, *sorted(unknown)])

    def encode(self, labels: Sequence[Iterable[str]]) -> sp.csr_matrix:
        """Return Y, CSR of shape (N, L) with values 0 and 1; duplicate labels count once."""
        numbers = self.numbers
        try:
            rows = [sorted({numbers[name] for name in line}) for line in labels]
        except KeyError as missing:
            raise TreetopError(f"label {missing.args[0]!r} is not in the vocabulary") from None
        indptr = np.cumsum([0, *map(len, rows)])
        indices = np.fromiter((number for row in rows for number in row), np.int32, indptr[-1])
        data = np.ones(indices.size, np.float32)
        return sp.csr_matrix((data, indices, indptr), shape=(len(rows), len(self)))


def vocabulary_of(labels: Iterable[Iterable[str]]) -> Vocabulary:
    """Collect all label names that occur, sorted."""
    names: set[str] = set()
    for number, line in enumerate(labels):
        if isinstance(line, str):
            raise not_a_list(line, number)
        try:
            names.update(line)
        except TypeError:
            raise not_a_list(line, number) from None
    for name in names:
        if not isinstance(name, str):
            raise TreetopError(
                f"Unknown label type: label {name!r} is of type {type(name).__name__}, not a string"
            )
    return Vocabulary(sorted(names))


def not_a_list(line: object, document: int) -> TreetopError:
    """Return the error for a document whose labels are not a list of names."""
    if isinstance(line, str):
        return TreetopError(
            f"labels of document {document} are the string {line!r}: give a list of names"
        )
    return TreetopError(
        f"Unknown label type: labels of document {document} are {line!r}: give a list of names"
    )


def as_labels(y: Any) -> Any:
    """Convert a Series, DataFrame, tensor or similar object to an array; return others unchanged."""
    if isinstance(y, list | tuple | np.ndarray) or sp.issparse(y) or not hasattr(y, "__array__"):
        return y
    return np.asarray(y)


def is_label_matrix(y: object) -> bool:
    """Whether labels are a matrix of shape (documents, labels)."""
    return sp.issparse(y) or (isinstance(y, np.ndarray) and y.ndim == 2)


def label_matrix(Y: Any) -> sp.csr_matrix:
    """Return Y as canonical float32 CSR, without explicit zeros; relevance must not be negative."""
    canonical = sp.csr_matrix(Y, dtype=np.float32, copy=True)
    canonical.sum_duplicates()
    canonical.eliminate_zeros()
    if not (np.isfinite(canonical.data).all() and (canonical.data >= 0).all()):
        raise TreetopError("label matrix: relevance must be finite and not negative")
    return canonical
