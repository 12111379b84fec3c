"""The quantities that metrics are computed from: ranks, hits, label frequencies."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from treetop.errors import TreetopError
from treetop.evaluation.propensity import inverse_propensity, propensity_constants
from treetop.labels.alignment import align_with_scores
from treetop.ranking.combining import ranked_labels
from treetop.runtime.checking import check_sparse


@dataclass(frozen=True, eq=False)
class Context:
    """Input of a metric at k: the true labels of N documents and the k labels ranked first.

    Parameters
    ----------
    Y : CSR matrix of shape (N, L')
        True labels as 1. Labels that the scores have no column for come last.
    scores : CSR matrix of shape (N, L)
        Scores of the labels that may be predicted.
    best : int64 array of shape (N, k)
        Label numbers, best first, -1 where a document has fewer than k scores. Ties go to the lower
        label number.
    hits : bool array of shape (N, k)
        Whether the label at each rank is true.
    positives : int array of shape (N,)
        Number of true labels per document.
    counts : int array of shape (L',)
        Training documents per label.
    inverse : float64 array of shape (L',)
        Inverse propensity of each label.
    constants : (float, float)
        A and B of the propensities.
    names : list of str
        Names of the L' labels.

    Examples
    --------
    >>> import numpy as np
    >>> context = ranking_context(np.array([[1, 0, 1]]), np.array([[0.9, 0.8, 0.1]]), k=2)
    >>> context.best.tolist(), context.hits.tolist(), context.positives.tolist()
    ([[0, 1]], [[True, False]], [2])
    """

    Y: sp.csr_matrix
    scores: sp.csr_matrix
    best: np.ndarray
    hits: np.ndarray
    positives: np.ndarray
    counts: np.ndarray
    inverse: np.ndarray
    constants: tuple[float, float]
    names: list[str]

    @property
    def k(self) -> int:
        """Number of ranks."""
        return int(self.best.shape[1])

    def at(self, k: int) -> Context:
        """Return the context of the first `k` ranks."""
        return replace(self, best=self.best[:, :k], hits=self.hits[:, :k])

    @cached_property
    def gains(self) -> np.ndarray:
        """Inverse propensity of the label at each rank, float64, 0 where the label is not true."""
        return np.where(self.hits, self.inverse[np.maximum(self.best, 0)], 0.0)

    @cached_property
    def ideal_gains(self) -> np.ndarray:
        """`gains` of the best possible ranking."""
        Y = self.Y
        weighted = sp.csr_matrix((self.inverse[Y.indices], Y.indices, Y.indptr), shape=Y.shape)
        best = ranked_labels(weighted, self.k)
        return np.where(best >= 0, self.inverse[np.maximum(best, 0)], 0.0)

    def rows(self, rows: np.ndarray) -> Context:
        """Return the context of some documents; a row number may occur several times."""
        return replace(
            self,
            Y=self.Y[rows],
            scores=self.scores[rows],
            best=self.best[rows],
            hits=self.hits[rows],
            positives=self.positives[rows],
        )

    @cached_property
    def listed(self) -> np.ndarray:
        """Number of labels among the first k, int64 (N,): fewer than k if scores are missing."""
        return np.asarray((self.best >= 0).sum(axis=1))

    @cached_property
    def predicted(self) -> sp.csr_matrix:
        """The first k labels as the predicted set: 0/1 CSR matrix of shape (N, L')."""
        return self.marked(self.best >= 0)

    @cached_property
    def correct(self) -> sp.csr_matrix:
        """The true ones among the first k labels: 0/1 CSR matrix of shape (N, L')."""
        return self.marked(self.hits)

    def marked(self, cells: np.ndarray) -> sp.csr_matrix:
        """The labels at some ranks, a mask of shape (N, k), as 0/1 CSR matrix of shape (N, L')."""
        ends = np.append(0, np.cumsum(cells.sum(axis=1)))
        ones = np.ones(int(ends[-1]), np.float32)
        return sp.csr_matrix((ones, self.best[cells], ends), shape=self.Y.shape)


def ranking_context(
    y_true: Any,
    scores: Any,
    k: int,
    *,
    classes: Iterable[object] | None = None,
    columns: Iterable[object] | None = None,
    train_counts: np.ndarray | None = None,
    train_documents: int | None = None,
    propensity: str | tuple[float, float] = "default",
) -> Context:
    """Rank labels by their scores and compare the first `k` with the true ones.

    Parameters are those of `evaluate`.
    """
    A, B = propensity_constants(propensity)
    if k < 1:
        raise TreetopError(f"k is {k}: it must be at least 1")
    scores = score_matrix(scores)
    Y, vocabulary = align_with_scores(y_true, scores.shape[1], classes, columns)
    Y.data = np.ones_like(Y.data)
    if Y.shape[0] != scores.shape[0]:
        raise TreetopError(f"{Y.shape[0]} documents have labels, {scores.shape[0]} have scores")
    if Y.shape[0] == 0:
        raise TreetopError("there are no documents to evaluate: give at least one with its labels")
    counts, documents = frequencies(Y), Y.shape[0]
    if train_counts is not None:
        if len(train_counts) != scores.shape[1]:
            raise TreetopError(
                f"train_counts has {len(train_counts)} labels, but the scores have "
                f"{scores.shape[1]} columns"
            )
        counts = np.zeros(Y.shape[1], np.int64)
        counts[: len(train_counts)] = train_counts
        documents = train_documents or documents
    best = ranked_labels(scores, k)
    return Context(
        Y=Y,
        scores=scores,
        best=best,
        hits=hits_of(Y, best),
        positives=np.diff(Y.indptr),
        counts=counts,
        inverse=inverse_propensity(counts, documents, A, B),
        constants=(A, B),
        names=vocabulary.names,
    )


def score_matrix(scores: object) -> sp.csr_matrix:
    """Convert scores to a sparse matrix; raise unless they are a matrix of numbers."""
    if sp.issparse(scores):
        check_sparse(scores, "scores")
    try:
        matrix = sp.csr_matrix(scores)
        unusable = np.isnan(matrix.data).any()
    except (TypeError, ValueError):
        raise TreetopError(
            "scores are not a matrix with a row per document and a column per label: "
            "give model.predict_scores(X), not model.predict(X)"
        ) from None
    if unusable:
        raise TreetopError("scores contain NaN")
    return matrix


def hits_of(Y: sp.csr_matrix, best: np.ndarray) -> np.ndarray:
    """Tell which ranked labels are true: bool array of shape (N, k)."""
    width = Y.shape[1]
    rows = np.repeat(np.arange(Y.shape[0]), np.diff(Y.indptr))
    true = np.sort(rows * width + Y.indices)
    if not true.size:
        return np.zeros(best.shape, bool)
    ranked = np.arange(best.shape[0])[:, None] * width + best
    position = np.minimum(np.searchsorted(true, ranked), true.size - 1)
    hits: np.ndarray = (best >= 0) & (true[position] == ranked)
    return hits


def frequencies(Y: sp.csr_matrix) -> np.ndarray:
    """Count the documents of each label.

    Parameters
    ----------
    Y : CSR matrix of shape (N, L)
        Labels; every stored value counts.

    Returns
    -------
    int array of shape (L,)

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> frequencies(sp.csr_matrix([[1, 0, 1], [0, 0, 1]])).tolist()
    [1, 0, 2]
    """
    return np.bincount(Y.indices, minlength=Y.shape[1])


def predicted_above(scores: sp.csr_matrix, threshold: float, width: int) -> sp.csr_matrix:
    """Select labels that score at least `threshold`: a 0/1 CSR matrix of `width` columns.

    Only stored scores count, whatever the threshold: a label that is not listed has none.
    """
    kept = (scores.data >= threshold) & (scores.data != 0)
    ends = np.append(0, np.cumsum(kept))[scores.indptr]
    ones = np.ones(int(ends[-1]), np.float32)
    return sp.csr_matrix((ones, scores.indices[kept], ends), shape=(scores.shape[0], width))
