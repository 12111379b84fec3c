"""Refined label trees and the rankers on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from treetop.features.hybrid import Features
from treetop.features.words.views import View
from treetop.labels.kmeans import KMeans
from treetop.labels.pifa import pifa
from treetop.labels.tree import Tree, balanced_tree, flat, free_tree
from treetop.ranking.ranker import Ranker, train_ranker
from treetop.ranking.weights import LabelWeights
from treetop.runtime import Runtime, parallel
from treetop.runtime.progress import Reporter
from treetop.settings import auto
from treetop.settings.schema import LinearSettings

# From so many threads per tree on, trees are trained side by side: alone, one tree's upper levels have
# too few blocks to keep them busy.
THREADS_PER_TREE = 3


def train_forest(
    X: Features,
    Y: sp.csr_matrix,
    weights: np.ndarray | None,
    settings: LinearSettings,
    runtime: Runtime,
    *,
    tree: Tree | None = None,
    head: LabelWeights | None = None,
    views: Sequence[View] = (),
) -> list[Ranker]:
    """Refined trees from Z = PIFA, and the rankers W[1] … W[D] of each.

    With `views`, a tree and its rankers see one of them.
    """
    if tree is None and auto.is_flat(settings, Y.shape[1]):
        tree = flat(Y.shape[1])
    count, threads = settings.trees, runtime.thread_count
    if tree is not None:
        count = min(count, max(1, len(views)))  # another one would be the same
    side_by_side = threads >= THREADS_PER_TREE * count
    common = None
    if tree is None and not views:
        runtime.reporter.step("label tree")
        common = label_features(X, Y, weights, settings, threads)

    def train(number: int, _: np.ndarray) -> Ranker:
        seed, share = settings.seed + number, -(-threads // count) if side_by_side else threads
        reporter = Reporter() if side_by_side else runtime.reporter
        view = views[number % len(views)] if views else None
        seen = X if view is None else view.of(X, share)
        label_tree = tree
        if label_tree is None:
            Z = common
            if Z is None:
                reporter.step("label tree")
                Z = label_features(seen, Y, weights, settings, share)
            label_tree = build_tree(Z, settings, seed, share)
        ranker = train_ranker(
            seen,
            Y,
            label_tree,
            settings.ranker(),
            seed=seed,
            threads=share,
            report=reporter,
            weights=weights,
            head=head,
        )
        if view is None:
            return ranker
        return replace(ranker, weights=ranker.weights.times(view.scale))  # for rows as `X` has them

    if side_by_side:
        return parallel.run(train, range(count), count, runtime.reporter.step("rankers", count))
    return [train(number, np.zeros(1, np.uint8)) for number in range(count)]


def label_features(
    X: Features, Y: sp.csr_matrix, weights: np.ndarray | None, settings: LinearSettings, threads: int
) -> Features:
    """Z."""
    as_pecos = settings.label_features == "pifa-pecos"
    return pifa(X, Y, threads, normalize_rows=as_pecos, largest=settings.tree_features, weights=weights)


def build_tree(Z: Features, settings: LinearSettings, seed: int, threads: int) -> Tree:
    """The label tree that the settings describe, which is not flat."""
    sizes = auto.refined_sizes(settings, Z.rows)
    kmeans = KMeans(settings.tree_passes, seed, threads, settings.tree_features)
    if sizes is None:
        return free_tree(Z, settings.branching, settings.leaf, kmeans)
    return balanced_tree(Z, sizes, kmeans)
