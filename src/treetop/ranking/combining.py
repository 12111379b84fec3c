"""Combination of the scores of several trees or models."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

COMBINE = ("average", "rank", "sigmoid", "softmax")


def best_of(scores: sp.csr_matrix, k: int) -> sp.csr_matrix:
    """Keep the best `k` scores of each row, best first; ties go to the lower label number."""
    counts = np.diff(scores.indptr)
    rows = np.repeat(np.arange(scores.shape[0]), counts)
    order = np.lexsort((scores.indices, -scores.data, rows))
    rank = np.arange(scores.nnz) - np.repeat(scores.indptr[:-1], counts)
    kept = order[rank < k]
    indptr = np.append(0, np.cumsum(np.minimum(counts, k)))
    data = scores.data[kept].astype(np.float32)
    return sp.csr_matrix((data, scores.indices[kept], indptr), shape=scores.shape)


def ranked_labels(scores: sp.csr_matrix, k: int) -> np.ndarray:
    """Return label numbers, int64 of shape (N, k), best first, padded with -1; ties as in `best_of`."""
    kept = best_of(scores, k)
    sizes = np.diff(kept.indptr)
    rows = np.repeat(np.arange(kept.shape[0]), sizes)
    ranks = np.arange(kept.nnz) - np.repeat(kept.indptr[:-1], sizes)
    best = np.full((kept.shape[0], k), -1, np.int64)
    best[rows, ranks] = kept.indices
    return best


def average(parts: Sequence[sp.csr_matrix], k: int) -> sp.csr_matrix:
    """Return the best `k` scores per row of the mean of several score matrices, best first."""
    return combined(parts, [1.0] * len(parts), "average", k)


def combined(
    parts: Sequence[sp.csr_matrix], weights: Sequence[float], combine: str, k: int
) -> sp.csr_matrix:
    """Return the best `k` scores per row of a weighted mean of score matrices, transformed first."""
    shares = np.asarray(weights, np.float64) / np.sum(weights)
    total = sum(
        float(weight) * worth(sp.csr_matrix(part), combine)
        for weight, part in zip(shares, parts, strict=True)
    )
    return best_of(sp.csr_matrix(total), k)


def worth(scores: sp.csr_matrix, combine: str) -> sp.csr_matrix:
    """Transform the scores of one model as `combine` says; labels without a score keep 0."""
    if combine == "average":
        return scores
    data = scores.data.astype(np.float64)
    counts = np.diff(scores.indptr)
    rows = np.repeat(np.arange(scores.shape[0]), counts)
    if combine == "sigmoid":
        data = 1 / (1 + np.exp(-data))
    elif combine == "softmax":
        peak = np.full(scores.shape[0], -np.inf)
        np.maximum.at(peak, rows, data)
        data = np.exp(data - peak[rows])
        data /= np.bincount(rows, data, minlength=scores.shape[0])[rows]
    else:
        order = np.lexsort((-data, rows))
        rank = np.empty_like(order)
        rank[order] = np.arange(order.size) - np.repeat(scores.indptr[:-1], counts)
        data = 1 / (1.0 + rank)
    return sp.csr_matrix((data, scores.indices, scores.indptr), shape=scores.shape)
