"""Scores in one tree of labels that only other trees list."""

from __future__ import annotations

import numpy as np

from treetop.features.hybrid import Features
from treetop.kernels import pooling as kernels
from treetop.kernels.pooling import LISTED
from treetop.ranking.beam import NO_MASK, Start, no_results, search_span
from treetop.ranking.pool import Pool, Search


def score_missing(
    search: Search, pool: Pool, tree: int, X: Features, span: tuple[int, int], cancel: np.ndarray
) -> None:
    """Replace the limits of labels that one tree does not list by their scores.

    The search continues from the nodes above them that were passed, level by level.
    """
    above = pool.above[tree]
    missing = np.flatnonzero(above != LISTED)
    if not missing.size:
        return
    levels = search.rankers[tree].level_of(above[missing])
    for level in np.unique(levels):
        below = np.zeros(above.size, bool)
        below[missing[levels == level]] = True
        pool.limits[tree, below] = scores_below(search, pool.part(below), tree, level, X, span, cancel)


def scores_below(
    search: Search,
    pool: Pool,
    tree: int,
    level: int,
    X: Features,
    span: tuple[int, int],
    cancel: np.ndarray,
) -> np.ndarray:
    """Scores in one tree of labels that it does not list, below passed nodes of a level."""
    ranker, rows, most = search.rankers[tree], span[1] - span[0], int(pool.counts.max())
    plan = search.plans[tree]._replace(
        beams=np.minimum(most, np.maximum(ranker.tree.sizes, 1)),  # holds all nodes above the labels
        candidates=(pool.ptr, ranker.leaves_of(pool.labels)),
        allowed=NO_MASK,
        whole=True,
        top=most,
    )
    if level:
        row_of = np.repeat(np.arange(rows), pool.counts)
        keys = row_of * ranker.first_leaf + pool.above[tree]
        _, first = np.unique(keys, return_index=True)
        ptr = np.searchsorted(row_of[first], np.arange(rows + 1))
        start = Start(int(level), ptr, pool.above[tree, first], pool.limits[tree, first])
        plan = plan._replace(start=start)
    found, scores = no_results(rows, most), np.empty(pool.labels.size, np.float32)
    search_span(ranker.weights, X, plan, span, found, cancel)
    node_of, first_leaf = ranker.tree.node_of, ranker.first_leaf
    kernels.complete(pool.ptr, pool.labels, node_of, first_leaf, *found, scores)
    return scores
