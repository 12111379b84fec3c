"""Label trees, label features and relevance."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import random_problem
from treetop.errors import TreetopError
from treetop.features.hybrid import features
from treetop.labels import relevance, tree
from treetop.labels.kmeans import KMeans, balanced_clusters, free_clusters
from treetop.labels.pifa import keep_largest, pifa
from treetop.settings.auto import sizes_by_branching
from treetop.settings.notation import tree_sizes

KMEANS = KMeans(passes=20, seed=0, threads=2)


def test_pifa_on_a_hand_computed_example():
    X = features(sp.csr_matrix(np.array([[1.0, 0, 0], [0, 2, 0], [0, 0, 3]], np.float32)))
    Y = sp.csr_matrix(np.array([[1, 0], [1, 1], [0, 1]], np.float32))
    Z = pifa(X, Y, 1).sparse.toarray()
    np.testing.assert_allclose(Z[0], np.array([1, 2, 0]) / np.sqrt(5), rtol=1e-6)
    np.testing.assert_allclose(Z[1], np.array([0, 2, 3]) / np.sqrt(13), rtol=1e-6)
    as_pecos = pifa(X, Y, 1, normalize_rows=True).sparse.toarray()
    expected = np.array([1, 2 / np.sqrt(2), 0])
    np.testing.assert_allclose(as_pecos[0], expected / np.linalg.norm(expected), rtol=1e-6)


@pytest.mark.parametrize("dense", [0, 3])
def test_pifa_equals_the_dense_product(rng, dense):
    X, extra, Y = random_problem(rng, dense=dense)
    Z = pifa(features(X, extra), Y, 2)
    whole = X.toarray() if extra is None else np.hstack([X.toarray(), extra])
    product = Y.T @ whole
    expected = product / np.maximum(np.linalg.norm(product, axis=1, keepdims=True), 1e-12)
    np.testing.assert_allclose(np.hstack([Z.sparse.toarray(), Z.dense]), expected, atol=1e-6)
    assert Z.dense.shape == (Y.shape[1], dense)


def test_pifa_uses_relevance_and_document_weights():
    X = features(sp.csr_matrix(np.eye(3, dtype=np.float32)))
    Y = sp.csr_matrix(np.array([[0.5, 0], [1, 1], [0, 2]], np.float32))
    Z = pifa(X, Y, 1, weights=np.array([2, 1, 3], np.float32)).sparse.toarray()
    np.testing.assert_allclose(Z[0], np.array([1, 1, 0]) / np.sqrt(2), rtol=1e-6)
    np.testing.assert_allclose(Z[1], np.array([0, 1, 6]) / np.sqrt(37), rtol=1e-6)


def test_keep_largest_keeps_the_largest_values(rng):
    X = sp.random(20, 30, 0.5, "csr", np.float32, rng)
    kept = keep_largest(features(X), 4, 2).sparse.toarray()
    for row, whole in zip(kept, X.toarray(), strict=True):
        expected = np.sort(np.abs(whole))[::-1][:4]
        np.testing.assert_allclose(np.sort(np.abs(row))[::-1][:4], expected)


def slow_bisect(Z, members, left_size, sides):
    """Balanced spherical 2-means by Lloyd's algorithm from given sides, with dense numpy."""
    for _ in range(50):
        left = Z[members[sides]].sum(axis=0)
        right = Z[members[~sides]].sum(axis=0)
        direction = left / np.linalg.norm(left) - right / np.linalg.norm(right)
        order = np.argsort(-(Z[members] @ direction), kind="stable")
        following = np.zeros(members.size, bool)
        following[order[:left_size]] = True
        if (following == sides).all():
            return sides
        sides = following
    return sides


def test_bisection_is_a_fixed_point_of_the_reference_implementation(rng):
    Z = rng.random((40, 15)).astype(np.float32)
    Z /= np.linalg.norm(Z, axis=1, keepdims=True)
    kmeans = KMeans(passes=50, seed=3, threads=1)
    pair = balanced_clusters(features(sp.csr_matrix(Z)), [np.arange(40)], [2], kmeans)[0]
    sides = np.isin(np.arange(40), pair[0])
    np.testing.assert_array_equal(slow_bisect(Z, np.arange(40), 20, sides), sides)


@pytest.mark.parametrize("kind", ["sparse", "dense", "hybrid"])
def test_separated_clusters_are_recovered(rng, kind):
    centres = np.eye(4, 12)
    Z = np.repeat(centres, 10, axis=0) + 0.05 * rng.random((40, 12))
    halves = {
        "sparse": (sp.csr_matrix(Z), None),
        "dense": (None, Z),
        "hybrid": (sp.csr_matrix(Z[:, :6]), Z[:, 6:]),
    }
    made = tree.balanced_tree(features(*halves[kind]), [4], KMEANS)
    groups = made.label_of.reshape(4, 10) // 10
    assert sorted(groups[:, 0]) == [0, 1, 2, 3]
    assert (groups == groups[:, :1]).all()


@given(st.integers(2, 60), st.integers(1, 9), st.integers(1, 4), st.integers(0, 5))
def test_siblings_in_balanced_trees_differ_by_at_most_one(labels, top, factor, seed):
    rng = np.random.default_rng(seed)
    Z = features(dense=rng.standard_normal((labels, 5)))
    sizes = [size for size in (top, top * factor + 1) if 1 < size < labels]
    sizes = sorted(set(sizes))
    made = tree.balanced_tree(Z, sizes, KMeans(passes=5, seed=seed, threads=2))
    assert made.sizes == [*sizes, labels]
    assert sorted(made.label_of) == list(range(labels))
    below = np.ones(labels, int)
    for level in range(made.depth, 0, -1):
        parents = made.parents(level)
        for parent in range(parents.max() + 1):
            children = below[parents == parent]
            assert children.max() - children.min() <= 1
        below = np.bincount(parents, below)


def test_trees_do_not_depend_on_threads(rng):
    X, _, Y = random_problem(rng, 200, 80, 50)
    Z = pifa(features(X), Y, 1)
    one = tree.balanced_tree(Z, [4, 16], KMEANS._replace(threads=1, largest=8))
    many = tree.balanced_tree(Z, [4, 16], KMEANS._replace(threads=5, largest=8))
    np.testing.assert_array_equal(one.label_of, many.label_of)
    free = [tree.free_tree(Z, 5, 6, KMEANS._replace(threads=threads)) for threads in (1, 4)]
    np.testing.assert_array_equal(free[0].label_of, free[1].label_of)
    assert sorted(free[0].label_of) == list(range(50))
    assert np.diff(free[0].child_ptr[-1]).max() <= 6


def test_plain_clusters_are_a_fixed_point_of_k_means(rng):
    Z = rng.random((60, 10)).astype(np.float32)
    Z /= np.linalg.norm(Z, axis=1, keepdims=True)
    clusters = free_clusters(features(sp.csr_matrix(Z)), np.arange(60), 4, KMEANS._replace(passes=100))
    centres = np.array([Z[cluster].sum(axis=0) for cluster in clusters])
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    nearest = (Z @ centres.T).argmax(axis=1)
    for number, cluster in enumerate(clusters):
        assert (nearest[cluster] == number).all()


def test_level_sizes():
    assert tree_sizes("16-256-L", 4000) == [16, 256]
    assert tree_sizes("16-256-L", 100) == [16]
    assert tree_sizes("L", 100) == []
    assert sizes_by_branching(4108, 16, 100) == [3, 42]
    assert sizes_by_branching(50, 16, 100) == []
    assert str(tree.flat(7)) == "7"
    assert repr(tree.flat(70_000)) == "<Tree: 70000>"


@pytest.mark.parametrize("spec", ["16-256", "256-16-L", "a-L", "0-L", ""])
def test_invalid_level_sizes_are_an_error(spec):
    with pytest.raises(TreetopError, match="tree"):
        tree_sizes(spec, 1000)


def test_a_tree_from_the_parents_of_its_nodes():
    made = tree.from_parents([np.array([1, 0, 1]), np.array([2, 0, 1, 0, 2])])
    assert made.sizes == [2, 3, 5]
    top_of_label = {}
    for position, label in enumerate(made.label_of):
        leaf = made.parents(3)[position]
        top_of_label[label] = (made.parents(2)[leaf], leaf)
    # labels 1 and 3 share a cluster, 0 and 4 another, and the clusters of 0 and 1 share a parent
    assert top_of_label[1] == top_of_label[3]
    assert top_of_label[0] == top_of_label[4]
    assert top_of_label[0][0] == top_of_label[1][0] != top_of_label[2][0]


@pytest.mark.parametrize(
    ("parents", "message"),
    [
        ([np.array([0, 2])], "has no children"),
        ([np.array([-1, 0])], "must be a number from 0"),
        ([], "at least one level"),
    ],
)
def test_invalid_parents_are_an_error(parents, message):
    with pytest.raises(TreetopError, match=message):
        tree.from_parents(parents)


def test_labels_and_relevance_are_aggregated_as_in_the_paper():
    # labels 0, 1 | 2, 3; the first document has three labels
    made = tree.from_parents([np.array([0, 0, 1, 1])])
    Y = sp.csr_matrix(np.array([[1, 1, 1, 0], [0, 0, 0, 1]], np.float32))
    R = relevance.all_levels(Y, made)
    np.testing.assert_array_equal(R[0].toarray(), [[2, 1], [0, 1]])
    np.testing.assert_array_equal(relevance.binarize(R[0]).toarray(), [[1, 1], [0, 1]])
    hat = relevance.normalized_relevance(R[0]).toarray()
    np.testing.assert_allclose(hat, [[2 / 3, 1 / 3], [0, 1]])


def test_without_cost_sensitive_learning_relevance_is_the_maximum(rng):
    Y = sp.random(30, 12, 0.4, "csr", np.float32, rng)
    made = tree.from_parents([np.array([0, 0, 1]), np.repeat([0, 1, 2], 4)])
    levels = relevance.all_levels(Y, made, cost_sensitive=False)
    dense = Y.toarray()
    np.testing.assert_array_equal(levels[2].toarray(), dense[:, made.label_of])
    for cluster in range(3):
        nodes = made.label_of[made.child_ptr[2][cluster] : made.child_ptr[2][cluster + 1]]
        np.testing.assert_array_equal(levels[1].toarray()[:, cluster], dense[:, nodes].max(axis=1))
    again = tree.Tree.from_arrays(made.arrays())
    assert str(again) == str(made)


def random_features(rng, labels):
    X, extra, Y = random_problem(rng, 300, 60, labels, 2)
    return pifa(features(X, extra), Y, 1)


def test_waves_build_the_lower_levels_of_each_subtree_alone(rng, monkeypatch):
    monkeypatch.setattr(tree, "LABELS_PER_WAVE", 30)
    Z = random_features(rng, 97)
    few = keep_largest(Z, 3, 1)
    trees = [
        tree.balanced_tree(tree.Waves(few, Z.__getitem__), [4, 13], KMEANS._replace(threads=threads))
        for threads in (1, 3)
    ]
    np.testing.assert_array_equal(trees[0].label_of, trees[1].label_of)
    plain = tree.balanced_tree(Z, [4, 13], KMEANS)
    for own, other in zip(trees[0].child_ptr[:2], plain.child_ptr[:2], strict=True):
        np.testing.assert_array_equal(own, other)
    # The slow twin: each of the upper clusters on its own.
    (waves,) = balanced_clusters(few, [np.arange(97)], [4], KMEANS)
    expected = []
    for number, members in enumerate(waves):
        parts = int(np.diff(plain.child_ptr[1])[number])
        own = KMEANS._replace(seed=KMEANS.seed + 1)
        (clusters,) = balanced_clusters(Z[members], [np.arange(members.size)], [parts], own)
        expected += [members[cluster] for cluster in clusters]
    np.testing.assert_array_equal(trees[0].label_of, np.concatenate(expected))
    assert (np.diff(trees[0].child_ptr[2]) == [cluster.size for cluster in expected]).all()


def test_waves_of_a_tree_of_one_level_are_its_clusters(rng, monkeypatch):
    monkeypatch.setattr(tree, "LABELS_PER_WAVE", 30)
    Z = random_features(rng, 97)
    made = tree.balanced_tree(tree.Waves(Z, Z.__getitem__), [4], KMEANS)
    np.testing.assert_array_equal(made.label_of, tree.balanced_tree(Z, [4], KMEANS).label_of)
