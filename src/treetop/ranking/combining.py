"""Combination of the scores of several models."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from treetop.errors import TreetopError

LINEAR_RANK = "linear-rank"
HOW = ("average", "rank", LINEAR_RANK, "sigmoid", "softmax")
# The same of raw scores: those of the labels' rankers alone, before any score transform.
RAW = "raw-"
COMBINE = (*HOW, *(f"{RAW}{how}" for how in HOW))
# Labels per document that each member of an ensemble contributes to the pool of candidates. It does not
# depend on the number of labels requested, and neither does any score.
LISTED = 100
# Best labels of a member over which softmax normalizes.
SOFTMAX_LABELS = 20


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


def largest(values: np.ndarray, count: int) -> np.ndarray:
    """Return the positions of the `count` largest values, best first; ties go to the lower position."""
    found = np.arange(values.size)
    if 0 < count < values.size:
        found = np.flatnonzero(values >= np.partition(values, -count)[-count])
    return found[np.argsort(-values[found], kind="stable")[:count]]


def ranked_labels(scores: sp.csr_matrix, k: int) -> np.ndarray:
    """Return label numbers, int64 of shape (N, k), best first, padded with -1; ties as in `best_of`."""
    kept = best_of(scores, k)
    sizes = np.diff(kept.indptr)
    rows = np.repeat(np.arange(kept.shape[0]), sizes)
    ranks = np.arange(kept.nnz) - np.repeat(kept.indptr[:-1], sizes)
    best = np.full((kept.shape[0], k), -1, np.int64)
    best[rows, ranks] = kept.indices
    return best


def combined(
    parts: Sequence[sp.csr_matrix], weights: Sequence[float], combine: str, k: int
) -> sp.csr_matrix:
    """Return the best `k` scores per row of a weighted mean of score matrices, transformed first.

    The mean of a label goes over the matrices that have a score for it: a missing score is not 0,
    except for ``"linear-rank"``, where it is the worst rank.
    """
    shape = parts[0].shape
    transformed = [worth(sp.csr_matrix(part), combine) for part in parts]
    positions = np.concatenate([positions_of(part) for part in transformed])
    shares = np.repeat(np.asarray(weights, np.float64), [part.nnz for part in transformed])
    values = shares * np.concatenate([part.data for part in transformed])
    distinct, place = np.unique(positions, return_inverse=True)
    totals, mass = np.bincount(place, values), np.bincount(place, shares)
    if combine == LINEAR_RANK:
        mass = np.full(totals.size, np.sum(weights))
    means = np.divide(totals, mass, out=np.zeros(totals.size), where=mass > 0)
    rows, labels = np.divmod(distinct, shape[1])
    indptr = np.searchsorted(rows, np.arange(shape[0] + 1))
    return best_of(sp.csr_matrix((means, labels, indptr), shape=shape), k)


def check_combine(combine: str, source: str | None = None) -> None:
    """Raise unless scores can be combined in this way; `source` begins the message."""
    if combine not in COMBINE:
        raise TreetopError(
            f"{source or f'combine is {combine!r}'}: choose one of {', '.join(HOW)}, or of the raw "
            f"scores, such as {RAW}average"
        )


def parsed_combine(combine: str) -> tuple[bool, str]:
    """Whether raw scores are combined, and how."""
    return combine.startswith(RAW), combine.removeprefix(RAW)


def restricted(scores: sp.csr_matrix, listed: sp.csr_matrix) -> sp.csr_matrix:
    """Keep the scores that another matrix has, too, in their order."""
    kept = np.isin(positions_of(scores), positions_of(listed))
    indptr = np.append(0, np.cumsum(kept))[scores.indptr]
    return sp.csr_matrix((scores.data[kept], scores.indices[kept], indptr), shape=scores.shape)


def positions_of(scores: sp.csr_matrix) -> np.ndarray:
    """The position of each stored score in the matrix read row by row: int64."""
    rows = np.repeat(np.arange(scores.shape[0], dtype=np.int64), np.diff(scores.indptr))
    return np.asarray(rows * scores.shape[1] + scores.indices)


def ranks_of(scores: sp.csr_matrix) -> np.ndarray:
    """The rank of each stored score in its row, from 0; ties go to the one that is stored first."""
    counts = np.diff(scores.indptr)
    rows = np.repeat(np.arange(scores.shape[0]), counts)
    order = np.lexsort((-scores.data, rows))
    ranks = np.empty_like(order)
    ranks[order] = np.arange(order.size) - np.repeat(scores.indptr[:-1], counts)
    return ranks


def worth(scores: sp.csr_matrix, combine: str) -> sp.csr_matrix:
    """Transform the scores of one model as `combine` says; only stored scores count.

    ``"linear-rank"`` is that of PECOS: `LISTED`, or the number of labels if there are fewer, for the
    first label, one less for each that follows.
    """
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
        best = ranks_of(scores) < SOFTMAX_LABELS
        data /= np.bincount(rows[best], data[best], minlength=scores.shape[0])[rows]
    elif combine == LINEAR_RANK:
        data = min(LISTED, scores.shape[1]) - ranks_of(scores).astype(np.float64)
    else:
        data = 1 / (1.0 + ranks_of(scores))
    return sp.csr_matrix((data, scores.indices, scores.indptr), shape=scores.shape)
