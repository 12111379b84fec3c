"""The best labels of several trees: their candidates form one pool, and each is scored in every tree.

A tree's candidates are the labels below its final beam. The score of a label is the mean over all
trees, even those whose beam did not reach it, so it does not depend on how many labels are requested.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import scipy.sparse as sp

from treetop.features.hybrid import Features
from treetop.kernels import pooling as kernels
from treetop.kernels.pooling import LISTED
from treetop.ranking.beam import no_results, search_span, to_csr
from treetop.ranking.missing import score_missing
from treetop.ranking.pool import Listed, Pool, Search
from treetop.ranking.ranker import Ranker
from treetop.runtime import parallel

# Rows per task: as many as have about this many candidates in all trees, within limits. Larger tasks
# search each tree longer, whose weights then stay in the processor's cache.
CANDIDATES_PER_TASK, FEWEST_ROWS, MOST_ROWS = 3 << 20, 8, 1024
# Labels per document that take less time to score in all trees than to look through again.
FEW = 32
# Rounding must not drop a label that ties with the last of the best.
SLACK = 1e-5


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
    if candidates is not None and not candidates.has_canonical_format:
        candidates = candidates.copy()
        candidates.sum_duplicates()
    plans = [ranker.plan(beam, allowed_labels, candidates) for ranker in rankers]
    labels, k = rankers[0].labels, min(k, rankers[0].labels)
    found = no_results(X.rows, k)
    listed = sum(ranker.most_listed(plan) for ranker, plan in zip(rankers, plans, strict=True))
    rows = min(max(CANDIDATES_PER_TASK // max(listed, 1), FEWEST_ROWS), MOST_ROWS)
    tasks = parallel.ranges(X.rows, -(-X.rows // (rows * threads)) * threads)
    rows = -(-X.rows // len(tasks))
    # Fresh memory for every task would take the system longer than the search.
    unused: list[Search] = []

    def search(span: tuple[int, int], cancel: np.ndarray) -> None:
        room = unused.pop() if unused else Search.with_room(rankers, plans, rows)
        own = room.of_rows(*span)
        pool = scored_pool(own, X, span, k, cancel)
        means, (first, last) = own.means(pool.limits), span
        kernels.rank(pool.ptr, pool.labels, means, *(part[first:last] for part in found))
        unused.append(room)

    if X.rows == 1:
        search((0, 1), np.zeros(1, np.uint8))
    else:
        parallel.run(search, tasks, threads)
    return to_csr(found, labels)


def scored_pool(search: Search, X: Features, span: tuple[int, int], k: int, cancel: np.ndarray) -> Pool:
    """The candidates that may be among the `k` best of each document, scored in every tree."""
    trees = range(len(search.rankers))
    if search.plans[0].candidates[0].size:
        pool = given_pool(search)
    else:
        pool, floors = best_pool(search, X, span, k, cancel)
        # Scores are mostly far below their limits: with some known, few labels are left for the others.
        for above, tree in product((1, 0) if search.falls else (0,), trees):
            if pool.labels.size <= FEW * pool.counts.size:
                break
            score_missing(search, pool, tree, above, X, span, cancel)
            pool = pool_reaching(search, pool, floors)
    for tree in trees:
        score_missing(search, pool, tree, 0, X, span, cancel)
    return pool


def pool_reaching(search: Search, pool: Pool, floors: np.ndarray) -> Pool:
    """The labels of a pool whose means may reach the documents' floors."""
    return pool.part(search.means(pool.limits) >= np.repeat(floors, pool.counts))


def given_pool(search: Search) -> Pool:
    """The candidates that the documents were given and may get, without scores."""
    plan, ranker = search.plans[0], search.rankers[0]
    pointers, leaves = plan.candidates
    leaves = leaves[pointers[0] : pointers[-1]]
    shape = (len(search.rankers), leaves.size)
    labels = ranker.tree.label_of[leaves - ranker.first_leaf]
    pool = Pool(pointers - pointers[0], labels, np.zeros(shape, np.float32), np.full(shape, -1))
    return pool.part(plan.allowed[leaves] > 0) if plan.allowed.size else pool


def best_pool(
    search: Search, X: Features, span: tuple[int, int], k: int, cancel: np.ndarray
) -> tuple[Pool, np.ndarray]:
    """The labels of all trees that may be among the `k` best of each document.

    Also returns what the mean of these reaches at least, float32 by document.
    """
    for ranker, plan, (found, bounds, passed) in zip(*search[:3], strict=True):
        whole = plan._replace(whole=True)
        search_span(ranker.weights, X, whole, span, found, cancel, bounds, passed)
    floors = lowest_means(search, pool_above(search, best_of_each(search, k)), k)
    pool = pool_above(search, lowest_scores(search, floors))
    return pool_reaching(search, pool, floors), floors


def best_of_each(search: Search, k: int) -> np.ndarray:
    """Each tree's `k`-th largest score of each document, float32 of shape (trees, documents)."""
    best = []
    for found, _, _ in search.lists:
        starts = np.arange(found.counts.size) * found.scores.shape[1]
        best.append(kth_largest_of(found.scores.reshape(-1), starts, found.counts, k))
    return np.array(best)


def kth_largest_of(values: np.ndarray, starts: np.ndarray, counts: np.ndarray, k: int) -> np.ndarray:
    """The `k`-th largest of each document's values (float32); -inf if there are fewer."""
    found = np.empty(counts.size, np.float32)
    kernels.kth_largest(values, starts, counts, k, found)
    return found


def pool_above(search: Search, cuts: np.ndarray) -> Pool:
    """The labels that reach the cut of one of the trees; float32 of shape (trees, documents)."""
    # Labels that are not allowed have the score -inf.
    cuts = np.nextafter(cuts, np.float32(-np.inf))
    gathered, trees = search.gathered, len(cuts)
    counts, ptr = np.zeros(len(gathered), np.int64), np.empty(len(gathered) + 1, np.int64)
    for ranker, (found, _, _), cut in zip(search.rankers, search.lists, cuts, strict=True):
        kernels.reach(
            found.nodes,
            found.scores,
            cut,
            ranker.weights.child_ptr,
            ranker.tree.label_of,
            ranker.first_leaf,
            gathered,
            counts,
        )
    labels = np.empty(counts.sum(), np.int64)
    kernels.unite(gathered, counts, ptr, labels)
    labels = labels[: ptr[-1]]
    limits, above = np.empty((trees, labels.size), np.float32), np.empty((trees, labels.size), np.int64)
    pool = Pool(ptr, labels, limits, above)
    for tree, ranker in enumerate(search.rankers):
        fill_in(pool, tree, ranker, search.lists[tree])
    return pool


def fill_in(pool: Pool, tree: int, ranker: Ranker, listed: Listed) -> None:
    """Fill in what the search in one tree found out about the labels of the pool."""
    found, bounds, passed = listed
    kernels.look_up(
        pool.ptr,
        pool.labels,
        ranker.tree.node_of,
        ranker.weights.parent_of,
        ranker.weights.child_ptr,
        ranker.first_leaf,
        found.nodes,
        found.scores,
        bounds,
        *passed,
        pool.limits[tree],
        pool.above[tree],
    )


def lowest_means(search: Search, pool: Pool, k: int) -> np.ndarray:
    """What the mean of the `k`-th best label of each document reaches at least, float32."""
    # A score that is not known may count nothing at all.
    least = 0.0 if search.multiplies else -np.inf
    means = np.where(pool.above == LISTED, search.values(pool.limits), least).mean(0)
    floors = kth_largest_of(means.astype(np.float32), pool.ptr[:-1], pool.counts, k)
    return np.asarray(floors - np.float32(SLACK) * np.abs(floors) - np.finfo(np.float32).tiny)


def lowest_scores(search: Search, floors: np.ndarray) -> np.ndarray:
    """Cuts, float32 of shape (trees, documents): a label below them all cannot be among the best.

    A label gains at most the bounds of the trees that do not list it.
    """
    bounds = np.array([listed.bounds for listed in search.lists])
    cuts = np.full(bounds.shape, -np.inf, np.float32)
    if not search.multiplies:
        return np.where(np.isneginf(bounds).all(0), floors, cuts)
    gains = search.values(bounds) / len(bounds)
    rest = floors - (gains.sum(0) - gains)
    np.log(rest, out=cuts, where=rest > 0, casting="same_kind")
    return cuts - np.float32(SLACK)
