"""Refined label trees, and the rankers trained on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from treetop.features.hybrid import Features
from treetop.features.words.views import View
from treetop.labels.kmeans import KMeans
from treetop.labels.pifa import aggregated, documents_of, most_values
from treetop.labels.tree import Tree, Waves, balanced_tree, flat, free_tree, joined_tree
from treetop.ranking.ranker import Ranker
from treetop.ranking.training import train_rankers
from treetop.ranking.weights import LabelWeights
from treetop.runtime import Runtime, parallel
from treetop.runtime.progress import Reporter
from treetop.settings import auto
from treetop.settings.notation import LevelSizes, parse_tree
from treetop.settings.schema import LinearSettings
from treetop.training.memory import MOST_VALUES, UPPER_FEATURES, within_memory

# Minimum number of threads per tree to train the trees in parallel: the upper levels of a single tree
# have too few blocks to keep more threads busy.
THREADS_PER_TREE = 3


class Forests(NamedTuple):
    """The rankers of all trees, and those that were trained without the held-out documents."""

    rankers: list[Ranker]
    of_fold: list[Ranker]  # empty if no documents are held out


def train_forests(
    X: Features,
    Y: sp.csr_matrix,
    weights: np.ndarray | None,
    settings: LinearSettings,
    runtime: Runtime,
    *,
    tree: Tree | None = None,
    head: LabelWeights | None = None,
    views: Sequence[View] = (),
    held: np.ndarray | None = None,
) -> Forests:
    """Build the refined trees from Z = PIFA, and train the rankers W[1] … W[D] of each.

    `tree` replaces the trees that would be built. With `views`, each tree and its rankers use the
    features of one view, taken in turn. For `head` and `held`, see `train_rankers`: trees are
    built from all documents.
    """
    if tree is None and auto.is_flat(settings, Y.shape[1]):
        tree = flat(Y.shape[1])
    count = settings.trees
    if tree is not None:
        count = min(count, max(1, len(views)))  # further trees would be identical
    runtime = within_memory(X, Y, settings, runtime, tree is None)
    threads = runtime.thread_count
    kind = "model" if tree is not None and tree.depth == 1 else "tree"
    in_parallel = threads >= THREADS_PER_TREE * count
    trees = [] if tree is None else [tree] * count
    if tree is None and not views:
        runtime.reporter.step("label features")
        Z = label_features(X, Y, weights, settings, threads)
        for number in range(count):
            runtime.reporter.step(f"{tree_title('tree', number, count)}label tree")
            trees.append(build_tree(Z, settings, settings.seed + number, threads))
        del Z

    def train(number: int, _: np.ndarray) -> tuple[Ranker, ...]:
        seed, own_threads = settings.seed + number, -(-threads // count) if in_parallel else threads
        reporter = Reporter() if in_parallel else runtime.reporter
        title = tree_title(kind, number, count)
        view = views[number % len(views)] if views else None
        seen = X if view is None else view.of(X, own_threads)
        if trees:
            own_tree = trees[number]
        else:
            reporter.step(f"{title}label features")
            Z = label_features(seen, Y, weights, settings, own_threads)
            reporter.step(f"{title}label tree")
            own_tree = build_tree(Z, settings, seed, own_threads)
            del Z  # takes much memory
        return train_rankers(  # the weights are for the rows of `X`, not of `seen`
            seen,
            Y,
            own_tree,
            settings.ranker(),
            seed=seed,
            threads=own_threads,
            report=reporter,
            weights=weights,
            head=head,
            scale=1.0 if view is None else view.scale,
            title=title,
            held=held,
        )

    if in_parallel:
        trained = parallel.run(train, range(count), count, runtime.reporter.step("rankers", count))
    else:
        trained = [train(number, np.zeros(1, np.uint8)) for number in range(count)]
    return Forests([own[0] for own in trained], [fold for _, *folds in trained for fold in folds])


def tree_title(kind: str, number: int, count: int) -> str:
    """What the names of steps begin with if there are several trees."""
    return f"{kind} {number + 1} of {count}, " if count > 1 else ""


def tree_of(
    X: Features,
    Y: sp.csr_matrix,
    weights: np.ndarray | None,
    settings: LinearSettings,
    seed: int,
    threads: int,
) -> Tree:
    """Build a tree; Z is in memory no longer than that."""
    return build_tree(label_features(X, Y, weights, settings, threads), settings, seed, threads)


def label_features(
    X: Features, Y: sp.csr_matrix, weights: np.ndarray | None, settings: LinearSettings, threads: int
) -> Features | Waves:
    """Compute Z, with the options that the settings choose."""
    members = documents_of(Y, settings.label_features == "pifa-pecos", weights)
    largest = settings.tree_features
    if most_values(X, members, largest) <= MOST_VALUES:
        return aggregated(X, members, threads, largest)
    few = UPPER_FEATURES if largest is None else min(UPPER_FEATURES, largest)
    upper = aggregated(X, members, threads, few)
    return Waves(upper, lambda labels: aggregated(X, members[labels], 1, largest))


def build_tree(Z: Features | Waves, settings: LinearSettings, seed: int, threads: int) -> Tree:
    """Build the label tree that the settings describe, unless it is flat."""
    sizes = auto.refined_sizes(settings, Z.upper.rows if isinstance(Z, Waves) else Z.rows)
    kmeans = KMeans(settings.tree_passes, seed, threads, settings.tree_features)
    if sizes is None:
        return free_tree(Z, settings.branching, settings.leaf, kmeans)
    return sized_tree(Z, sizes, parse_tree(settings.tree), kmeans)


def sized_tree(Z: Features | Waves, sizes: list[int], written: LevelSizes, kmeans: KMeans) -> Tree:
    """Build a tree of these sizes K[1] … K[D-1], from top down or, as PECOS does, from bottom up."""
    if written.pecos is not None and sizes:
        return joined_tree(Z, sizes, written.pecos.nr_splits, kmeans)
    return balanced_tree(Z, sizes, kmeans)
