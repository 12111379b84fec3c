"""Refined label trees and the rankers on them."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from treetop.config import LinearSettings
from treetop.features.hybrid import Features
from treetop.labels import tree as trees
from treetop.labels.pifa import pifa
from treetop.labels.tree import Tree
from treetop.progress import Silent
from treetop.ranking.ranker import Ranker, train_ranker


def train_forest(
    X: Features, Y: sp.csr_matrix, weights: np.ndarray | None, settings: LinearSettings,
    threads: int, report: Silent, tree: Tree | None = None,
) -> list[Ranker]:  # fmt: skip
    """Refined trees from Z = PIFA, and the rankers W[1] … W[D] of each."""
    rankers = []
    for number in range(settings.trees):
        seed = settings.seed + number
        label_tree = tree
        if label_tree is None:
            report.step("label tree")
            label_tree = build_tree(
                label_features(X, Y, weights, settings, threads), settings, seed, threads
            )
        rankers.append(
            train_ranker(X, Y, label_tree, settings.ranker(), seed, threads, report, weights)
        )
        if label_tree.depth == 1:
            break  # another one would be the same
    return rankers


def label_features(
    X: Features, Y: sp.csr_matrix, weights: np.ndarray | None, settings: LinearSettings, threads: int
) -> Features:
    """Z."""
    as_pecos = settings.label_features == "pifa-pecos"
    return pifa(X, Y, threads, as_pecos, settings.tree_features, weights)


def build_tree(Z: Features, settings: LinearSettings, seed: int, threads: int) -> Tree:
    """The label tree that the settings describe."""
    labels = Z.rows
    if settings.tree == "flat" or labels == 1:
        return trees.flat(labels)
    common = (settings.tree_passes, seed, threads, settings.tree_features)
    if settings.tree != "auto":
        return trees.balanced_tree(Z, trees.shape_of(settings.tree, labels), *common)
    if labels <= settings.flat_labels:
        return trees.flat(labels)
    if settings.balanced:
        sizes = trees.shape_by_branching(labels, settings.branching, settings.leaf)
        return trees.balanced_tree(Z, sizes, *common)
    return trees.free_tree(Z, settings.branching, settings.leaf, *common)
