"""Refined label trees and the rankers on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from treetop.features.hybrid import Features
from treetop.features.words.views import View
from treetop.labels import tree as trees
from treetop.labels.kmeans import KMeans
from treetop.labels.pifa import pifa
from treetop.labels.tree import Tree
from treetop.ranking.ranker import Ranker, train_ranker
from treetop.ranking.weights import LabelWeights
from treetop.runtime import parallel
from treetop.runtime.progress import Reporter
from treetop.settings.schema import LinearSettings

# From so many threads a tree on, trees are trained side by side: alone, one tree's upper levels have
# too few blocks to keep them busy.
THREADS_A_TREE = 3


def train_forest(
    X: Features,
    Y: sp.csr_matrix,
    weights: np.ndarray | None,
    settings: LinearSettings,
    threads: int,
    report: Reporter,
    tree: Tree | None = None,
    head: LabelWeights | None = None,
    views: Sequence[View] = (),
) -> list[Ranker]:
    """Refined trees from Z = PIFA, and the rankers W[1] … W[D] of each.

    With `views`, a tree and its rankers see one of them.
    """
    if tree is None and is_flat(settings, Y.shape[1]):
        tree = trees.flat(Y.shape[1])
    count = settings.trees
    if tree is not None:
        count = min(count, max(1, len(views)))  # another one would be the same
    side_by_side = threads >= THREADS_A_TREE * count
    common = None
    if tree is None and not views:
        report.step("label tree")
        common = label_features(X, Y, weights, settings, threads)

    def train(number: int, _: np.ndarray) -> Ranker:
        seed, share = settings.seed + number, -(-threads // count) if side_by_side else threads
        said = Reporter() if side_by_side else report
        view = views[number % len(views)] if views else None
        seen = X if view is None else view.of(X, share)
        label_tree = tree
        if label_tree is None:
            Z = common
            if Z is None:
                said.step("label tree")
                Z = label_features(seen, Y, weights, settings, share)
            label_tree = build_tree(Z, settings, seed, share)
        ranker = train_ranker(
            seen,
            Y,
            label_tree,
            settings.ranker(),
            seed=seed,
            threads=share,
            report=said,
            weights=weights,
            head=head,
        )
        if view is None:
            return ranker
        return replace(ranker, weights=ranker.weights.times(view.scale))  # for rows as `X` has them

    if side_by_side:
        return parallel.run(train, range(count), count, report.step("rankers", count))
    return [train(number, np.zeros(1, np.uint8)) for number in range(count)]


def is_flat(settings: LinearSettings, labels: int) -> bool:
    """Whether the settings make a tree without clusters."""
    few = settings.tree == "auto" and labels <= settings.flat_labels
    return settings.tree == "flat" or few or labels == 1


def label_features(
    X: Features, Y: sp.csr_matrix, weights: np.ndarray | None, settings: LinearSettings, threads: int
) -> Features:
    """Z."""
    as_pecos = settings.label_features == "pifa-pecos"
    return pifa(X, Y, threads, normalize_rows=as_pecos, largest=settings.tree_features, weights=weights)


def build_tree(Z: Features, settings: LinearSettings, seed: int, threads: int) -> Tree:
    """The label tree that the settings describe, which is not flat."""
    labels = Z.rows
    kmeans = KMeans(settings.tree_passes, seed, threads, settings.tree_features)
    if settings.tree != "auto":
        return trees.balanced_tree(Z, trees.shape_of(settings.tree, labels), kmeans)
    if settings.balanced:
        sizes = trees.shape_by_branching(labels, settings.branching, settings.leaf)
        return trees.balanced_tree(Z, sizes, kmeans)
    return trees.free_tree(Z, settings.branching, settings.leaf, kmeans)
