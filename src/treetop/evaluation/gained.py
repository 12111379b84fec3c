"""True labels that one of two models finds and the other does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from treetop.evaluation.context import Context, frequencies
from treetop.evaluation.details import Details
from treetop.ranking.combining import largest


class Gains(NamedTuple):
    """Pairs of document and label that are right in one model alone: 0/1 CSR (N, labels of both)."""

    only_a: sp.csr_matrix
    only_b: sp.csr_matrix
    correct_a: sp.csr_matrix
    correct_b: sp.csr_matrix
    names: list[str]

    def swapped(self) -> Gains:
        """The same with A and B exchanged."""
        return Gains(self.only_b, self.only_a, self.correct_b, self.correct_a, self.names)


def gained_hits(a: Context, b: Context) -> Gains:
    """Compare the hits among the first k labels. The models may number the labels differently."""
    numbers = {name: number for number, name in enumerate(a.names)}
    position = np.array([numbers.setdefault(name, len(numbers)) for name in b.names], np.int64)
    shape = (a.Y.shape[0], len(numbers))
    parts = (a.correct, a.correct.indices), (b.correct, position[b.correct.indices])
    correct = [sp.csr_matrix((one.data, columns, one.indptr), shape=shape) for one, columns in parts]
    both = correct[0].multiply(correct[1])
    only = [positive(sp.csr_matrix(one - both)) for one in correct]
    return Gains(only[0], only[1], correct[0], correct[1], list(numbers))


def positive(matrix: sp.csr_matrix) -> sp.csr_matrix:
    """The matrix without its zeros."""
    matrix.eliminate_zeros()
    return matrix


def gains_summary(details: Sequence[Details], gains: Gains, k: int, count: int) -> dict[str, Any]:
    """Count what model A finds alone, and show the documents where it finds most more than B."""
    gained = np.diff(gains.only_a.indptr)
    ahead = gained - np.diff(gains.only_b.indptr)
    best = [row for row in largest(ahead, count).tolist() if ahead[row] > 0] if count > 0 else []
    return {
        "documents": int((gained > 0).sum()),
        "labels": int(gains.only_a.nnz),
        "examples": [example_of(details, gains, row, k) for row in best],
    }


def example_of(details: Sequence[Details], gains: Gains, row: int, k: int) -> dict[str, Any]:
    """A document, its labels, those that only A finds, and what B predicts instead."""
    own, other = details
    at = other.context.at(k)
    wrong = at.best[row][(at.best[row] >= 0) & ~at.hits[row]]
    pointers, labels = gains.only_a.indptr, gains.only_a.indices
    found = [gains.names[label] for label in labels[pointers[row] : pointers[row + 1]].tolist()]
    return {
        "document": row,
        "text": own.shown_text(row),
        "labels": own.true_labels(row),
        "found": found,
        "instead": other.names(wrong[: len(found)]),
    }


def label_differences(gains: Gains, count: int) -> list[dict[str, Any]]:
    """The labels whose number of right predictions differs most between the models."""
    a, b = frequencies(gains.correct_a), frequencies(gains.correct_b)
    rows = []
    for label in largest(np.abs(a - b), count).tolist() if count > 0 else []:
        if a[label] != b[label]:
            rows.append({"label": gains.names[label], "a": int(a[label]), "b": int(b[label])})
    return rows
