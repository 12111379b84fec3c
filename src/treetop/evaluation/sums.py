"""Metrics as functions of sums over documents, so that resampling documents only changes weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp


class Sums(Protocol):
    """A metric of N documents."""

    @property
    def value(self) -> float:
        """The metric."""

    def resampled(self, weights: np.ndarray) -> np.ndarray:
        """The metric of S samples, float64 (S,).

        `weights`, float64 of shape (N, S), says how often each document occurs in each sample.
        """


@dataclass(frozen=True, eq=False)
class DocumentRatio:
    """A metric that is a ratio of two sums over documents, such as a mean; 0/0 is 0."""

    above: np.ndarray  # integers or float64, (N,)
    below: np.ndarray

    @property
    def value(self) -> float:
        """The ratio."""
        return ratio(self.above.sum(), self.below.sum())

    def resampled(self, weights: np.ndarray) -> np.ndarray:
        """The ratio of each sample."""
        above, below = np.stack([self.above, self.below]).astype(np.float64) @ weights
        return ratios(above, below)


class Counts(NamedTuple):
    """How often each label is predicted correctly, predicted, and true: arrays of shape (L, S)."""

    correct: np.ndarray
    predicted: np.ndarray
    true: np.ndarray


@dataclass(frozen=True, eq=False)
class LabelCounts:
    """A metric that depends on how often each label is predicted and true."""

    correct: sp.csr_matrix  # 0/1, (N, L)
    predicted: sp.csr_matrix
    true: sp.csr_matrix
    combine: Callable[[Counts], np.ndarray]  # from (L, S) to (S,)

    @property
    def value(self) -> float:
        """The metric."""
        return float(self.resampled(np.ones((self.true.shape[0], 1)))[0])

    @cached_property
    def by_label(self) -> tuple[sp.csr_matrix, ...]:
        """The three matrices by label, without those that are neither predicted nor true."""
        labels = np.union1d(self.predicted.indices, self.true.indices)
        parts = (self.correct, self.predicted, self.true)
        return tuple(sp.csr_matrix(part[:, labels].T, dtype=np.float64) for part in parts)

    def resampled(self, weights: np.ndarray) -> np.ndarray:
        """The metric of each sample."""
        return self.combine(Counts(*(part @ weights for part in self.by_label)))


def macro_f1_of(counts: Counts) -> np.ndarray:
    """Mean F1 over the labels that occur or are predicted."""
    both = counts.predicted + counts.true
    return ratios(ratios(2 * counts.correct, both).sum(axis=0), (both > 0).sum(axis=0))


def coverage_of(counts: Counts) -> np.ndarray:
    """Fraction of the labels that occur which are predicted correctly at least once."""
    return ratios((counts.correct > 0).sum(axis=0), (counts.true > 0).sum(axis=0))


def f1(Y: sp.csr_matrix, predicted: sp.csr_matrix) -> dict[str, float]:
    """Compute micro and macro F1 of predicted label sets.

    The macro average is over labels that occur or are predicted.
    """
    correct = sp.csr_matrix(Y.multiply(predicted))
    return {
        "micro_f1": ratio(2 * correct.sum(), predicted.sum() + Y.sum()),
        "macro_f1": LabelCounts(correct, predicted, Y, macro_f1_of).value,
    }


def ratio(part: float, total: float) -> float:
    """Divide, with 0 for 0/0."""
    return float(part / total) if total else 0.0


def ratios(parts: np.ndarray, totals: np.ndarray) -> np.ndarray:
    """Divide element by element, with 0 for 0/0: float64."""
    quotients = np.zeros(np.shape(parts))
    np.divide(parts, totals, out=quotients, where=np.asarray(totals) != 0)
    return quotients
