"""Precision and recall over thresholds of the score, and the reliability of probabilities."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from treetop.evaluation.context import Context
from treetop.evaluation.sums import ratios
from treetop.ranking.combining import positions_of

POINTS = 200
BINS = 15


class Curve(NamedTuple):
    """Precision and recall of the labels that score at least a threshold: float64 of one length."""

    thresholds: np.ndarray  # descending
    precision: np.ndarray
    recall: np.ndarray

    @property
    def f1(self) -> np.ndarray:
        """Micro F1 at each threshold."""
        return ratios(2 * self.precision * self.recall, self.precision + self.recall)


class Reliability(NamedTuple):
    """Bins of predictions with similar probabilities, about the same number in each: float64."""

    predicted: np.ndarray  # mean probability
    observed: np.ndarray  # share of true labels
    sizes: np.ndarray

    @property
    def error(self) -> float:
        """Expected calibration error: the mean distance of both, by size of the bins."""
        gaps = np.abs(self.predicted - self.observed)
        return float((self.sizes * gaps).sum() / max(1, self.sizes.sum()))


def precision_recall(context: Context) -> Curve:
    """Compute precision and recall over thresholds, of all scores that were predicted.

    At most `POINTS` thresholds are kept, evenly spaced by recall.
    """
    correct = are_true(context.Y, context.scores)
    order = np.argsort(-context.scores.data, kind="stable")
    scores, hits = context.scores.data[order], np.cumsum(correct[order])
    # Equal scores pass a threshold together.
    ends = np.flatnonzero(np.append(scores[1:] != scores[:-1], True)) if scores.size else order
    recall = ratios(hits[ends], np.full(ends.size, context.positives.sum()))
    if ends.size > POINTS:
        wanted = np.linspace(recall[0], recall[-1], POINTS)
        chosen = np.unique(np.minimum(np.searchsorted(recall, wanted), ends.size - 1))
        ends, recall = ends[chosen], recall[chosen]
    return Curve(scores[ends].astype(np.float64), hits[ends] / (ends + 1), recall)


def are_true(Y: sp.csr_matrix, scores: sp.csr_matrix) -> np.ndarray:
    """Tell which stored scores are of true labels: bool (nonzeros,). Y may have further columns."""
    known = sp.csr_matrix(Y[:, : scores.shape[1]])
    return np.isin(positions_of(scores), positions_of(known))


def reliability(probabilities: np.ndarray, true: np.ndarray, bins: int = BINS) -> Reliability:
    """Compare probabilities with how often they are right, in bins of about the same size.

    `probabilities` are float64 (n,), `true` bool (n,).
    """
    order = np.argsort(probabilities, kind="stable")
    parts = [part for part in np.array_split(order, bins) if part.size]
    means = [[probabilities[part].mean(), true[part].mean(), part.size] for part in parts]
    return Reliability(*np.array(means, np.float64).reshape(-1, 3).T)
