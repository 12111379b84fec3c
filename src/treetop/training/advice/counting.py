"""Counted work of the rankers: how many documents each level of a tree reads, for how many labels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from treetop.labels.relevance import all_levels
from treetop.labels.tree import Tree
from treetop.ranking.solver import block_width


class LevelWork(NamedTuple):
    """What the solver reads on one level of a tree."""

    clusters: int
    children: float  # per cluster
    rows: float  # documents of all clusters together
    blocks: float  # blocks of labels per cluster that are trained at once

    def visits(self, values_per_document: float) -> float:
        """Feature values read in one pass, each for a block of labels."""
        return self.rows * self.blocks * values_per_document


def level_work(clusters: int, children: float, rows: float, documents: int) -> LevelWork:
    """Count the work of a level whose clusters are all of the mean size."""
    whole = max(1, round(children))
    width = block_width(whole, round(rows / clusters), documents)
    return LevelWork(clusters, children, rows, -(-whole // width))


def work_in_tree(tree: Tree, Y: sp.csr_matrix) -> list[LevelWork]:
    """Count the work of each level of a tree over these documents."""
    rows = [Y.shape[0], *(level.nnz for level in all_levels(Y, tree, False)[:-1])]
    parents = [1, *tree.sizes[:-1]]
    return [
        level_work(above, size / above, own, Y.shape[0])
        for above, size, own in zip(parents, tree.sizes, rows, strict=True)
    ]


def expected_work(sizes: list[int], labels_per_document: np.ndarray, spread: float) -> list[LevelWork]:
    """Predict the work of each level of a tree of these sizes K[1] … K[D].

    `spread` says how far apart the labels of a document are in the tree: 0 if always in one cluster, 1
    if their clusters are random.
    """
    documents = labels_per_document.size
    rows = [float(documents)]
    for clusters in sizes[:-1]:
        rows.append(rows_of_clusters(clusters, labels_per_document, spread))
    parents = [1, *sizes[:-1]]
    return [
        level_work(above, size / above, own, documents)
        for above, size, own in zip(parents, sizes, rows, strict=True)
    ]


def rows_of_clusters(clusters: int, labels_per_document: np.ndarray, spread: float) -> float:
    """Predict the documents of all clusters together: each counts once per cluster of its labels."""
    together = float((labels_per_document > 0).sum())
    apart = float(distinct_clusters(clusters, labels_per_document).sum())
    return together + spread * (apart - together)


def distinct_clusters(clusters: int, labels_per_document: np.ndarray) -> np.ndarray:
    """The expected number of clusters of a document's labels if they were random: float64."""
    return clusters * (1 - (1 - 1 / clusters) ** labels_per_document.astype(np.float64))


def spread_of(tree: Tree, Y: sp.csr_matrix) -> float:
    """Measure the `spread` of `expected_work` in a tree; 1 where it cannot be measured."""
    if tree.depth == 1:
        return 1.0
    sizes = np.diff(Y.indptr)
    together = float((sizes > 0).sum())
    apart = float(distinct_clusters(tree.sizes[-2], sizes).sum())
    rows = all_levels(Y, tree, False)[-2].nnz
    return (rows - together) / (apart - together) if apart > together else 1.0
