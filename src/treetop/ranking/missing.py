"""Scores in one tree of labels that only other trees list."""

from __future__ import annotations

import numpy as np

from treetop.features.hybrid import Features
from treetop.kernels import missing as kernel
from treetop.ranking.pool import Pool, Search


def score_missing(
    search: Search,
    pool: Pool,
    tree: int,
    above: int,
    X: Features,
    span: tuple[int, int],
    cancel: np.ndarray,
) -> None:
    """Replace the limits of labels that one tree does not list by their scores.

    Each label is scored from the node above it that was passed, level by level. With `above` 1, 2, …
    the limits are replaced by the scores of the nodes so many levels above the labels.
    """
    ranker, plan = search.rankers[tree], search.plans[tree]
    kernel.score_along_paths(
        *X.arrays,
        *span,
        *ranker.weights.for_search,
        plan.depth,
        ranker.weights.largest,
        plan.score.kinds,
        plan.score.powers,
        plan.score.combines,
        ranker.tree.node_of,
        ranker.weights.parent_of,
        ranker.first_leaf,
        plan.depth - above,
        pool.ptr,
        pool.labels,
        pool.above[tree],
        pool.limits[tree],
        cancel,
    )
