"""The best labels of several trees: their candidates form one pool, and each is scored in every tree.

A tree's candidates are the labels below its final beam. The score of a label is the mean over all
trees, even those whose beam did not reach it, so it does not depend on how many labels are requested.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from treetop.features.hybrid import Features
from treetop.kernels import pooling as kernels
from treetop.ranking.beam import NO_MASK, Nodes, SearchPlan, no_results, search_span, to_csr
from treetop.ranking.ranker import Ranker
from treetop.runtime import parallel

# Rows per task: as many as have about this many candidates in all trees, within limits.
CANDIDATES_PER_TASK, FEWEST_ROWS, MOST_ROWS = 1 << 18, 8, 256


@dataclass(frozen=True)
class Pool:
    """Candidates of some documents, ascending by label, and their scores in every tree."""

    labels: np.ndarray  # int64, documents x room, filled up to `counts`
    scores: np.ndarray  # float32, documents x room x trees; NaN: not known
    counts: np.ndarray  # int64
    bounds: np.ndarray  # float32, trees x documents: what no unknown score exceeds

    def missing(self, tree: int) -> tuple[np.ndarray, np.ndarray]:
        """The labels whose score in a tree is not known: pointers by document, and the labels."""
        widest = int(self.counts.max(initial=0))
        filled = np.arange(widest) < self.counts[:, None]
        unknown = filled & np.isnan(self.scores[:, :widest, tree])
        return np.append(0, np.cumsum(unknown.sum(1))), self.labels[:, :widest][unknown]


def best_of_trees(
    rankers: Sequence[Ranker],
    X: Features,
    k: int,
    threads: int,
    beam: int | None = None,
    allowed_labels: np.ndarray | None = None,
    candidates: sp.csr_matrix | None = None,
) -> sp.csr_matrix:
    """Return the `k` largest mean scores over the trees of each document, CSR (N, L), best first.

    The trees have the same score transform. `allowed_labels` and `candidates` are as in
    `Ranker.predict`; candidates are the pool themselves.
    """
    plans = [ranker.plan(beam, allowed_labels, candidates) for ranker in rankers]
    labels, k = rankers[0].labels, min(k, rankers[0].labels)
    found = no_results(X.rows, k)

    def search(span: tuple[int, int], cancel: np.ndarray) -> None:
        first, last = span
        own = [plan.of_rows(first, last) for plan in plans]
        pool = pool_of(rankers, own, X, span, k, cancel)
        kernels.rank(
            pool.labels,
            pool.scores,
            pool.counts,
            pool.bounds,
            own[0].score.exponentiate,
            *(part[first:last] for part in found),
        )

    if X.rows == 1:
        search((0, 1), np.zeros(1, np.uint8))
    else:
        listed = sum(ranker.most_listed(plan) for ranker, plan in zip(rankers, plans, strict=True))
        rows = min(max(CANDIDATES_PER_TASK // max(listed, 1), FEWEST_ROWS), MOST_ROWS)
        parallel.run(search, parallel.ranges(X.rows, -(-X.rows // rows)), threads)
    return to_csr(found, labels)


def pool_of(
    rankers: Sequence[Ranker],
    plans: Sequence[SearchPlan],
    X: Features,
    span: tuple[int, int],
    k: int,
    cancel: np.ndarray,
) -> Pool:
    """The candidates that may be among the `k` best of each document, scored in every tree."""
    rows, trees = span[1] - span[0], len(rankers)
    room = max(ranker.most_listed(plan) for ranker, plan in zip(rankers, plans, strict=True))
    labels, scores = np.empty((trees, rows, room), np.int64), np.empty((trees, rows, room), np.float32)
    counts, bounds = np.empty((trees, rows), np.int64), np.empty((trees, rows), np.float32)
    for tree, (ranker, plan) in enumerate(zip(rankers, plans, strict=True)):
        listed = Nodes(labels[tree], scores[tree], counts[tree])
        list_labels(ranker, X, plan._replace(top=room), span, listed, bounds[tree], cancel)
    pool = Pool(
        np.empty((rows, trees * room), np.int64),
        np.empty((rows, trees * room, trees), np.float32),
        np.empty(rows, np.int64),
        bounds,
    )
    logarithms = plans[0].score.exponentiate
    kernels.pool(labels, scores, counts, bounds, k, logarithms, pool.labels, pool.scores, pool.counts)
    for tree, (ranker, plan) in enumerate(zip(rankers, plans, strict=True)):
        score_missing(pool, tree, ranker, plan, X, span, cancel)
    return pool


def score_missing(
    pool: Pool,
    tree: int,
    ranker: Ranker,
    plan: SearchPlan,
    X: Features,
    span: tuple[int, int],
    cancel: np.ndarray,
) -> None:
    """Fill in the scores of one tree for the labels that it does not list."""
    pointers, labels = pool.missing(tree)
    if not labels.size:
        return
    rows, most = span[1] - span[0], int(np.diff(pointers).max())
    plan = plan._replace(candidates=(pointers, ranker.leaves_of(labels)), allowed=NO_MASK)
    plan = plan.reaching_all()._replace(top=most)
    listed = no_results(rows, most)
    list_labels(ranker, X, plan, span, listed, np.empty(rows, np.float32), cancel)
    kernels.complete(*listed, tree, pool.labels, pool.counts, pool.scores)


def list_labels(
    ranker: Ranker,
    X: Features,
    plan: SearchPlan,
    span: tuple[int, int],
    listed: Nodes,
    bounds: np.ndarray,
    cancel: np.ndarray,
) -> None:
    """Fill `listed` with all labels below the final beams, at most ``plan.top``, and their scores."""
    whole = plan._replace(whole=True)
    search_span(ranker.weights, X, whole, span, listed, bounds, cancel)
    kernels.name_leaves(listed.nodes, listed.counts, ranker.first_leaf, ranker.tree.label_of)
