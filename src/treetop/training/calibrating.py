"""Fits a calibration to scores of documents that a model was not trained on.

The logit of a label is a sum of tables (see `treetop.model.calibration`). They are fitted together, as
a logistic regression whose coefficients are the tables' entries: smooth, and rising with the score. One
isotonic step on the sum follows. Few scores get a plain logistic curve instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from treetop.model.calibration import Calibration
from treetop.ranking.combining import positions_of
from treetop.training.tables import rising_tables

# Documents, at least, and labels scored in them, at least, for more than a logistic curve.
FEWEST_DOCUMENTS, FEW_PAIRS = 30, 2000
SCORES, KNOTS, RANKS, STEPS = 16, 6, 6, 60
# A step of the isotonic part begins with so many labels as the tables predict.
PRIOR_PAIRS = 4.0


class OutOfFold(NamedTuple):
    """Scores of documents that the model was not trained on, and what is true of them."""

    scores: sp.csr_matrix  # (N, L), best first in each row
    lengths: np.ndarray  # int64, number of features of each document
    truth: sp.csr_matrix  # (N, L), nonzero at true labels

    def hits(self) -> np.ndarray:
        """Which of the scores are those of true labels: float64."""
        return np.isin(positions_of(self.scores), positions_of(self.truth)).astype(np.float64)


class ScoredPairs(NamedTuple):
    """Documents and labels that were scored for them, flat."""

    score: np.ndarray
    best: np.ndarray  # the largest score of the document
    rank: np.ndarray  # from 0
    length: np.ndarray  # log(1 + features)
    frequency: np.ndarray  # log(1 + training documents)
    hit: np.ndarray  # 1 if the label is true, else 0

    @classmethod
    def of(cls, evidence: Sequence[OutOfFold], label_counts: np.ndarray) -> ScoredPairs:
        """All pairs of the evidence; `label_counts` are those of the model that gave the scores."""
        columns = [columns_of_pairs(part, label_counts) for part in evidence]
        return cls(*(np.concatenate(parts) for parts in zip(*columns, strict=True)))


def columns_of_pairs(evidence: OutOfFold, label_counts: np.ndarray) -> tuple[np.ndarray, ...]:
    """The fields of `ScoredPairs` for one part of the evidence."""
    scores = evidence.scores
    sizes = np.diff(scores.indptr)
    starts = np.repeat(scores.indptr[:-1], sizes)
    values = scores.data.astype(np.float64)
    return (
        values,
        values[starts],
        np.arange(scores.nnz) - starts,
        np.log1p(np.repeat(evidence.lengths, sizes)),
        np.log1p(label_counts[scores.indices]),
        evidence.hits(),
    )


class Knots(NamedTuple):
    """Where the tables have their entries: see `Calibration`."""

    scores: np.ndarray
    lengths: np.ndarray
    counts: np.ndarray
    margins: np.ndarray


class PlacedPairs(NamedTuple):
    """Where the pairs lie in a table: each between two rows and two columns."""

    rows: int
    columns: int
    design: sp.csr_matrix  # float64, pairs x entries


def fit_calibration(evidence: Sequence[OutOfFold], label_counts: np.ndarray) -> Calibration | None:
    """Fit a calibration.

    Parameters
    ----------
    evidence : sequence of OutOfFold
        The documents first; then perhaps the same documents cut short.
    label_counts : int64 array of shape (L,)
        Training documents per label, of the model that gave the scores.

    Returns
    -------
    Calibration or None
        None if there are too few documents, or only true or only false labels.
    """
    pairs = ScoredPairs.of(evidence, label_counts)
    documents = np.count_nonzero(np.diff(evidence[0].scores.indptr))
    if documents < FEWEST_DOCUMENTS or not 0 < pairs.hit.sum() < pairs.hit.size:
        return None
    few = pairs.hit.size < FEW_PAIRS
    knots = few_knots(pairs) if few else all_knots(pairs)
    ranks = 1 if few else RANKS
    designs = placed_in_tables(pairs, knots, ranks)
    tables = fitted_tables(designs, pairs.hit)
    logits = sum(table.design @ values.ravel() for table, values in zip(designs, tables, strict=True))
    whole = evidence[0].scores.nnz  # copies cut short are harder than whole texts of their length
    steps = sigmoid_steps(logits) if few else isotonic_steps(logits[:whole], pairs.hit[:whole])
    by_length, by_count, by_rank, by_margin = tables
    return Calibration(*knots, by_length, by_count, by_rank, by_margin, *steps)


def all_knots(pairs: ScoredPairs) -> Knots:
    """Knots of scores, lengths, counts and margins where the pairs are, half of them by true labels."""
    true = pairs.hit > 0
    shares = np.linspace(0, 1, SCORES // 2 + 1)
    scores = distinct_knots(np.quantile(pairs.score, shares), np.quantile(pairs.score[true], shares))
    few = np.linspace(0, 1, KNOTS)
    lengths = distinct_knots(np.quantile(pairs.length[pairs.rank == 0], few))
    counts = distinct_knots(np.quantile(pairs.frequency[true], few), [pairs.frequency.min()])
    last = float(scores.size - 1)
    margins = distinct_knots([0.0, *(step for step in (1.0, 2.0, 4.0, 8.0) if step < last), last])
    return Knots(scores, lengths, counts, margins)


def few_knots(pairs: ScoredPairs) -> Knots:
    """Knots with which the tables are a straight line."""
    nothing = np.zeros(1)
    return Knots(distinct_knots([pairs.score.min(), pairs.score.max()]), nothing, nothing, nothing)


def distinct_knots(*values: Sequence[float] | np.ndarray) -> np.ndarray:
    """All values, ascending, without those that are almost equal to the one before."""
    ascending = np.unique(np.concatenate([np.asarray(part, np.float64) for part in values]))
    apart = np.diff(ascending, prepend=-np.inf) > 1e-9 * np.abs(ascending).max(initial=1e-9)
    return np.asarray(ascending[apart])


def placed_in_tables(pairs: ScoredPairs, knots: Knots, ranks: int) -> list[PlacedPairs]:
    """Where the pairs lie in the tables by length, count, rank and margin."""
    places = place_of_values(knots.scores, pairs.score)
    margins = place_of_values(knots.scores, pairs.best) - places
    columns = (
        (place_of_values(knots.lengths, pairs.length), knots.lengths.size),
        (place_of_values(knots.counts, pairs.frequency), knots.counts.size),
        (np.minimum(pairs.rank, ranks - 1).astype(np.float64), ranks),
        (place_of_values(knots.margins, margins), knots.margins.size),
    )
    return [
        PlacedPairs(knots.scores.size, size, between(places, knots.scores.size, place, size))
        for place, size in columns
    ]


def place_of_values(knots: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Where values lie among knots, in steps between them; outside, at the nearest."""
    return np.asarray(np.interp(values, knots, np.arange(knots.size)))


def between(row: np.ndarray, rows: int, column: np.ndarray, columns: int) -> sp.csr_matrix:
    """The shares of a table's entries in the values at these places: pairs x entries."""
    up, left = row.astype(np.int64), column.astype(np.int64)
    down, right = np.minimum(up + 1, rows - 1), np.minimum(left + 1, columns - 1)
    lower, later = row - up, column - left
    entries = np.stack([up * columns + left, up * columns + right])
    entries = np.concatenate([entries, [down * columns + left, down * columns + right]])
    shares = [(1 - lower) * (1 - later), (1 - lower) * later, lower * (1 - later), lower * later]
    pointers = np.arange(0, 4 * row.size + 1, 4)
    cells = (np.stack(shares).T.ravel(), entries.T.ravel(), pointers)
    return sp.csr_matrix(cells, shape=(row.size, rows * columns))


def fitted_tables(tables: list[PlacedPairs], hit: np.ndarray) -> list[np.ndarray]:
    """The most probable tables: logistic loss, smooth, not falling along the score."""
    shapes = [(table.rows, table.columns) for table in tables]
    design = sp.csr_matrix(sp.hstack([table.design for table in tables], "csr"), dtype=np.float32)
    design.eliminate_zeros()
    return rising_tables(design, hit, shapes)


def expit(logits: np.ndarray) -> np.ndarray:
    """The logistic function."""
    return np.asarray(1 / (1 + np.exp(-np.clip(logits, -500, 500))))


def sigmoid_steps(logits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The logistic function over the range of the logits, for interpolation."""
    knots = np.linspace(logits.min(), max(logits.max(), logits.min() + 1e-3), STEPS)
    return knots, expit(knots)


def isotonic_steps(logits: np.ndarray, hit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How often labels of similar logits are true, made not to fall: logits and probabilities.

    Steps hold about the same share of the variance and of the true labels, so they are fine where it is
    not decided whether labels are true, and also where almost all are.
    """
    from scipy.optimize import isotonic_regression

    order = np.argsort(logits, kind="stable")
    ordered, hits, expected = logits[order], hit[order], expit(logits[order])
    variance = expected * (1 - expected)
    mass = np.cumsum(variance / variance.sum() + expected / expected.sum() + 1 / expected.size / STEPS)
    step = np.minimum((STEPS * mass / mass[-1]).astype(np.int64), STEPS - 1)
    sizes = np.bincount(step, minlength=STEPS)
    kept = sizes > 0
    means = [np.bincount(step, values, minlength=STEPS)[kept] for values in (ordered, hits, expected)]
    sizes = sizes[kept]
    knots, prior = means[0] / sizes, means[2] / sizes
    shares = (means[1] + PRIOR_PAIRS * prior) / (sizes + PRIOR_PAIRS)
    rising = isotonic_regression(shares, weights=sizes + PRIOR_PAIRS).x
    apart = np.diff(knots, prepend=-np.inf) > 0
    return knots[apart], np.clip(rising[apart], 0.0, 1.0)
