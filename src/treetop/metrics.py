"""Measures of the field, on sparse matrices, overall and by label frequency. Usable alone.

`Y_true` is N x L' with L' at least the L of `scores` (N x L): labels that only the test set has
follow the known ones and count as missed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from treetop.errors import TreetopError

# (A, B) of Jain et al. 2016 as the field uses them
PROPENSITIES = {"wikipedia": (0.5, 0.4), "amazon": (0.6, 2.6), "default": (0.55, 1.5)}
BUCKETS = ((0, 0), (1, 1), (2, 4), (5, 9), (10, 49), (50, 499), (500, None))


def top_k(scores: sp.csr_matrix, k: int) -> np.ndarray:
    """N x k label numbers, best first, -1 where a row has fewer. Ties go to the lower label."""
    scores = sp.csr_matrix(scores)
    sizes = np.diff(scores.indptr)
    rows = np.repeat(np.arange(scores.shape[0]), sizes)
    order = np.lexsort((scores.indices, -scores.data, rows))
    rank = np.arange(scores.nnz) - np.repeat(scores.indptr[:-1], sizes)
    best = np.full((scores.shape[0], k), -1, np.int64)
    kept = rank < k
    best[rows[kept], rank[kept]] = scores.indices[order][kept]
    return best


def hits_of(Y: sp.csr_matrix, best: np.ndarray) -> np.ndarray:
    """N x k booleans: whether the label at each rank is true."""
    width = Y.shape[1]
    rows = np.repeat(np.arange(Y.shape[0]), np.diff(Y.indptr))
    true = np.sort(rows * width + Y.indices)
    asked = np.arange(best.shape[0])[:, None] * width + best
    place = np.minimum(np.searchsorted(true, asked), max(true.size - 1, 0))
    if not true.size:
        return np.zeros(best.shape, bool)
    return (best >= 0) & (true[place] == asked)


def inverse_propensity(counts: np.ndarray, documents: int, A: float, B: float) -> np.ndarray:
    """1/p_l = 1 + C (N_l + B)^-A with C = (ln N - 1)(B + 1)^A."""
    C = (np.log(documents) - 1.0) * (B + 1.0) ** A
    return 1.0 + C * (counts + B) ** -A


def precision(hits: np.ndarray, k: int) -> float:
    """P@k: share of the k first that are true."""
    return float(hits[:, :k].sum(axis=1).mean() / k)


def recall(hits: np.ndarray, positives: np.ndarray, k: int) -> float:
    """R@k: share of a document's labels among the k first; documents without labels left out."""
    has = positives > 0
    return _mean(hits[has, :k].sum(axis=1) / positives[has])


def r_precision(hits: np.ndarray, positives: np.ndarray, k: int) -> float:
    """RP@k: hits among the k first, over min(k, number of labels)."""
    has = positives > 0
    return _mean(hits[has, :k].sum(axis=1) / np.minimum(k, positives[has]))


def ndcg(hits: np.ndarray, positives: np.ndarray, k: int) -> float:
    """nDCG@k with discount 1/log2(rank + 1)."""
    has = positives > 0
    discount = 1.0 / np.log2(np.arange(2, k + 2))
    gained = (hits[has, :k] * discount).sum(axis=1)
    possible = np.cumsum(discount)[np.minimum(k, positives[has]) - 1]
    return _mean(gained / possible)


def propensity_scored(
    Y: sp.csr_matrix, best: np.ndarray, hits: np.ndarray, inverse: np.ndarray, k: int
) -> tuple[float, float]:
    """(PSP@k, PSnDCG@k): as ratios to the best possible ranking, as the field reports them."""
    gains = np.where(hits[:, :k], inverse[np.maximum(best[:, :k], 0)], 0.0)
    weighted = sp.csr_matrix((inverse[Y.indices], Y.indices, Y.indptr), shape=Y.shape)
    ideal_best = top_k(weighted, k)
    ideal = np.where(ideal_best >= 0, inverse[np.maximum(ideal_best, 0)], 0.0)
    discount = 1.0 / np.log2(np.arange(2, k + 2))
    # nDCG divides each document's sum by that of its own number of labels, as does the ideal one.
    scale = np.cumsum(discount)[np.clip(np.diff(Y.indptr), 1, k) - 1]
    return (
        _ratio(gains.sum(), ideal.sum()),
        _ratio(
            ((gains * discount).sum(axis=1) / scale).sum(),
            ((ideal * discount).sum(axis=1) / scale).sum(),
        ),
    )


def f1(Y: sp.csr_matrix, predicted: sp.csr_matrix) -> dict[str, float]:
    """Micro and macro F1 of predicted label sets. Macro is over labels that occur or are predicted."""
    agreed = np.asarray(Y.multiply(predicted).sum(axis=0)).ravel()
    said = np.asarray(predicted.sum(axis=0)).ravel()
    true = np.asarray(Y.sum(axis=0)).ravel()
    seen = (said + true) > 0
    return {
        "micro_f1": _ratio(2 * agreed.sum(), said.sum() + true.sum()),
        "macro_f1": _mean(2 * agreed[seen] / (said + true)[seen]),
    }


def evaluate(
    Y_true: Any,
    scores: Any,
    k: Sequence[int] = (1, 3, 5),
    *,
    train_counts: np.ndarray | None = None,
    train_documents: int | None = None,
    propensity: str | tuple[float, float] = "default",
    threshold: float | None = None,
) -> dict[str, Any]:
    """Every measure, in shares of 1: ``{"P@1": …, …, "by_frequency": {"1": {...}, …}}``.

    `train_counts` (documents a label has in training, length L) and `train_documents` give PSP and
    the frequency buckets; without them, counts come from `Y_true` itself. `threshold` adds F1 of all
    labels that score at least that much, and coverage.
    """
    Y, scores = _matrices(Y_true, scores)
    deepest = max(k)
    best = top_k(scores, deepest)
    hits = hits_of(Y, best)
    positives = np.diff(Y.indptr)
    counts = np.bincount(Y.indices, minlength=Y.shape[1])
    documents = Y.shape[0]
    if train_counts is not None:
        counts = np.zeros(Y.shape[1], np.int64)
        counts[: len(train_counts)] = train_counts
        documents = train_documents or documents
    A, B = PROPENSITIES[propensity] if isinstance(propensity, str) else propensity
    inverse = inverse_propensity(counts, documents, A, B)

    result: dict[str, Any] = {"documents": int(Y.shape[0]), "labels": int(Y.shape[1])}
    result["documents_without_labels"] = int((positives == 0).sum())
    for at in k:
        result[f"P@{at}"] = precision(hits, at)
        result[f"R@{at}"] = recall(hits, positives, at)
        result[f"RP@{at}"] = r_precision(hits, positives, at)
        result[f"nDCG@{at}"] = ndcg(hits, positives, at)
        result[f"PSP@{at}"], result[f"PSnDCG@{at}"] = propensity_scored(Y, best, hits, inverse, at)
        for name, value in f1(Y, _chosen(best[:, :at], Y.shape)).items():
            result[f"{name}@{at}"] = value
    result[f"coverage@{deepest}"] = coverage(Y, best, hits)
    if threshold is not None:
        above = sp.csr_matrix(scores >= threshold) if scores.nnz else scores
        above = sp.csr_matrix(above.multiply(scores != 0), dtype=np.float32)
        result.update({f"{n}>={threshold:g}": v for n, v in f1(Y, _padded(above, Y)).items()})
    result["by_frequency"] = by_frequency(Y, best, hits, counts)
    return result


def coverage(Y: sp.csr_matrix, best: np.ndarray, hits: np.ndarray) -> float:
    """Share of the labels that occur in the test set that were found at least once."""
    return _ratio(np.unique(best[hits]).size, np.unique(Y.indices).size)


def by_frequency(
    Y: sp.csr_matrix, best: np.ndarray, hits: np.ndarray, counts: np.ndarray
) -> dict[str, dict[str, float]]:
    """For labels of each training frequency: how many, recall, precision and F1 at the largest k."""
    found: dict[str, dict[str, float]] = {}
    said = np.maximum(best, 0)
    for low, high in BUCKETS:
        inside = (counts >= low) & (counts <= (np.inf if high is None else high))
        occurring = int(inside[Y.indices].sum())
        if not occurring:
            continue
        agreed = int((hits & inside[said]).sum())
        predicted = int(((best >= 0) & inside[said]).sum())
        name = f"{low}+" if high is None else (str(low) if low == high else f"{low}-{high}")
        found[name] = {
            "labels": int(inside[np.unique(Y.indices)].sum()),
            "occurrences": occurring,
            "recall": _ratio(agreed, occurring),
            "precision": _ratio(agreed, predicted),
            "f1": _ratio(2 * agreed, occurring + predicted),
        }
    return found


def frequencies(Y: sp.csr_matrix) -> np.ndarray:
    """Documents of each label."""
    return np.bincount(Y.indices, minlength=Y.shape[1])


def _matrices(Y_true: Any, scores: Any) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    Y, scores = sp.csr_matrix(Y_true, dtype=np.float32), sp.csr_matrix(scores)
    Y.sum_duplicates()
    Y.eliminate_zeros()
    Y.data = np.ones_like(Y.data)
    if Y.shape[0] != scores.shape[0]:
        raise TreetopError(f"{Y.shape[0]} documents have labels, {scores.shape[0]} have scores")
    if Y.shape[1] < scores.shape[1]:
        raise TreetopError(
            f"true labels have {Y.shape[1]} columns, scores {scores.shape[1]}: "
            "every label that can be predicted needs a column"
        )
    if scores.nnz and np.isnan(scores.data).any():
        raise TreetopError("scores contain NaN")
    return Y, scores


def _chosen(best: np.ndarray, shape: tuple[int, int]) -> sp.csr_matrix:
    given = best >= 0
    rows = np.nonzero(given)[0]
    data = np.ones(rows.size, np.float32)
    return sp.csr_matrix((data, (rows, best[given])), shape=shape)


def _padded(matrix: sp.csr_matrix, like: sp.csr_matrix) -> sp.csr_matrix:
    return sp.csr_matrix((matrix.data, matrix.indices, matrix.indptr), shape=like.shape)


def _ratio(part: float, whole: float) -> float:
    return float(part / whole) if whole else 0.0


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if values.size else 0.0
