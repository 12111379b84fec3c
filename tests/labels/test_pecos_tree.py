"""Trees with the shapes of PECOS's HierarchicalKMeans."""

import numpy as np
import pytest
import scipy.sparse as sp

from treetop.errors import TreetopError
from treetop.features.hybrid import features
from treetop.labels.kmeans import KMeans
from treetop.labels.tree import balanced_tree, joined_tree
from treetop.settings import auto
from treetop.settings.making import make_settings
from treetop.settings.notation import PecosTree, parse_tree
from treetop.settings.schema import LinearSettings

KMEANS = KMeans(passes=10, seed=0, threads=1)


@pytest.mark.parametrize(
    ("labels", "tree", "sizes"),
    [
        # The recipes of the paper's data sets, and the level sizes of its table of hyperparameters.
        (3_956, PecosTree(16, 16, 16), [16, 256]),
        (3_956, PecosTree(8, 8, 16), [4, 32, 256]),
        (30_938, PecosTree(16, 128, 16), [128, 2048]),
        (30_938, PecosTree(16, 16, 16), [8, 128, 2048]),
        (13_330, PecosTree(8, 128, 16), [128, 1024]),
        (501_070, PecosTree(8, 64, 16), [64, 512, 4096, 32768]),
        (501_070, PecosTree(32, 32, 100), [8, 256, 8192]),
        (670_091, PecosTree(16, 128, 32), [128, 2048, 32768]),
        (670_091, PecosTree(32, 32, 100), [8, 256, 8192]),
        (2_812_281, PecosTree(16, 128, 100), [128, 2048, 32768]),
        # Amazon-3M: the recipe refines another tree than the paper prints (8-256-8192-L), and its
        # second and third members have another preliminary one, of which three levels are fine-tuned.
        (2_812_281, PecosTree(32, 32, 100), [32, 1024, 32768]),
        (2_812_281, PecosTree(16, 128, 32), [32, 512, 8192, 131072]),
        # AmazonCat-13K's member XLNet
        (13_330, PecosTree(8, 128, 100), [32, 256]),
        # the skeleton of xlinear.train: not flat, unless the labels fit into one leaf
        (4_000, PecosTree(16, 16, 100), [4, 64]),
        (100, PecosTree(16, 16, 100), []),
        (200, PecosTree(10, 10, 3), [2, 13, 128]),
    ],
)
def test_sizes_follow_from_the_parameters_as_in_pecos(labels, tree, sizes):
    assert tree.sizes(labels) == sizes


def test_neighbours_are_joined_from_bottom_up():
    rng = np.random.default_rng(0)
    Z = features(sp.random(200, 30, 0.3, "csr", np.float32, rng))
    tree = joined_tree(Z, [2, 13, 128], 10, KMEANS)
    assert tree.sizes == [2, 13, 128, 200]
    assert np.diff(tree.child_ptr[1]).tolist() == [10, 3]
    assert np.diff(tree.child_ptr[2]).tolist() == [10] * 12 + [8]
    assert set(np.diff(tree.child_ptr[3])) == {1, 2}
    assert sorted(tree.label_of) == list(range(200))
    # With powers of two it has the shape of a tree that is built from top down.
    even = joined_tree(Z, [4, 16], 4, KMEANS)
    for own, other in zip(even.child_ptr, balanced_tree(Z, [4, 16], KMEANS).child_ptr, strict=True):
        np.testing.assert_array_equal(own, other)


def test_the_notation_of_trees():
    spec = "pecos:nr_splits=8,min_codes=16,max_leaf_size=100"
    assert parse_tree(spec).pecos == PecosTree(8, 16, 100)
    settings = LinearSettings(tree=spec)
    assert auto.refined_sizes(settings, 3_000) == [4, 32]
    assert auto.as_trained(settings, settings.ranker(), [4, 32, 3000]).tree == "4-32-L"
    assert auto.first_sizes("pecos:nr_splits=16,min_codes=128,max_leaf_size=32", 2_812_281, 32_768) == (
        [32, 512, 8192, 131072],
        3,
    )
    for wrong in ("pecos:8", "pecos:nr_splits=1,min_codes=8,max_leaf_size=16"):
        with pytest.raises(TreetopError, match="is not understood: write pecos:nr_splits=16"):
            make_settings({"tree": wrong})
    with pytest.raises(TreetopError, match="max_leaf_size=1 would have empty clusters"):
        PecosTree(2, 2, 1).sizes(100)
