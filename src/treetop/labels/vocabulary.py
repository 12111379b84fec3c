"""Label names and their column numbers."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from treetop.errors import TreetopError
from treetop.labels.given import check_names_in
from treetop.labels.types import plain_label, type_of


class Vocabulary:
    """Label names in a fixed order."""

    def __init__(self, names: Iterable[Any]) -> None:
        self.names = list(names)

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def numbers(self) -> dict[Any, int]:
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
        number_of, sizes = self.numbers.__getitem__, array("q", [0])

        def columns() -> Iterator[int]:
            for line in labels:
                row = sorted(set(map(number_of, line)))
                sizes.append(len(row))
                yield from row

        try:
            indices = np.fromiter(columns(), np.int32)
        except KeyError as missing:
            raise TreetopError(f"label {missing.args[0]!r} is not in the vocabulary") from None
        data, indptr = np.ones(indices.size, np.float32), np.cumsum(sizes)
        return sp.csr_matrix((data, indices, indptr), shape=(len(labels), len(self)))


def vocabulary_of(labels: Sequence[Iterable[Any]]) -> Vocabulary:
    """Collect all label names that occur, sorted; they must be of one type."""
    types = check_names_in(labels)
    unique: set[Any] = set()
    for names in labels:
        unique.update(names)
    plain = [plain_label(name) for name in unique]
    if len(types) > 1:  # True and 1 are the same element of a set
        examples = {type(name): plain_label(name) for names in labels for name in names}
        type_of(list(examples.values()))
    return Vocabulary(sorted(plain))


def label_matrix(Y: object) -> sp.csr_matrix:
    """Return Y as canonical float32 CSR, without explicit zeros; relevance must not be negative."""
    try:
        canonical = sp.csr_matrix(Y, dtype=np.float32, copy=True)
    except (TypeError, ValueError):
        raise TreetopError("label matrix: holds values that are not numbers") from None
    canonical.sum_duplicates()
    canonical.eliminate_zeros()
    if not (np.isfinite(canonical.data).all() and (canonical.data >= 0).all()):
        raise TreetopError("label matrix: relevance must be finite and not negative")
    return canonical
