"""Counted work: exact in a tree that is known, and in expectation for one that is not."""

import numpy as np
import pytest
import scipy.sparse as sp

from treetop.labels.tree import from_parents
from treetop.training.advice.counting import (
    distinct_clusters,
    expected_work,
    spread_of,
    work_in_tree,
)

# Six labels in three clusters of two.
TREE = from_parents([np.array([0, 0, 1, 1, 2, 2])])
Y = sp.csr_matrix(np.array([[1, 1, 0, 0, 0, 0], [1, 0, 1, 0, 0, 0], [0, 0, 0, 0, 0, 1]], np.float32))


def test_work_counts_each_document_once_per_cluster_of_its_labels():
    root, labels = work_in_tree(TREE, Y)
    assert (root.clusters, root.rows, root.blocks) == (1, 3, 1)
    assert (labels.clusters, labels.children, labels.rows) == (3, 2, 1 + 2 + 1)
    assert labels.visits(10) == 40


def test_distinct_clusters_are_what_random_labels_hit_on_average(rng):
    drawn = rng.integers(0, 7, (20_000, 4))
    mean = np.mean([len(set(row)) for row in drawn.tolist()])
    assert distinct_clusters(7, np.array([4]))[0] == pytest.approx(mean, rel=0.01)


def test_a_spread_measured_in_a_tree_predicts_its_own_work():
    spread = spread_of(TREE, Y)
    _, labels = expected_work(TREE.sizes, np.diff(Y.indptr), spread)
    assert labels.rows == pytest.approx(4)
    assert labels == work_in_tree(TREE, Y)[1]._replace(rows=labels.rows)
