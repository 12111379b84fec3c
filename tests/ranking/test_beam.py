"""Beam search, compared with dense numpy."""

import numpy as np
import pytest
import scipy.sparse as sp

from tests.conftest import random_problem
from tests.slow_weights import slow_matrix
from treetop.errors import TreetopError
from treetop.features.hybrid import features
from treetop.labels import tree as trees
from treetop.labels.kmeans import KMeans
from treetop.labels.pifa import pifa
from treetop.labels.relevance import all_levels
from treetop.ranking.chunks import assemble
from treetop.ranking.matching import predicted_nodes, shortlist
from treetop.ranking.ranker import Ranker
from treetop.ranking.scores import score_kind
from treetop.ranking.solver import solve_level
from treetop.ranking.training import train_rankers
from treetop.ranking.weights import ClusterWeights
from treetop.runtime.progress import Reporter
from treetop.settings.parts import RankerSettings

SOLVER_OPTIONS = {"seed": 0, "threads": 2, "report": Reporter(), "name": ""}
TRANSFORMS = {
    "l3-hinge": lambda v: np.exp(-(np.maximum(1 - v, 0) ** 3)),
    "l1-hinge": lambda v: np.exp(-np.maximum(1 - v, 0)),
    "l3-ordered": lambda v: np.exp(-(np.maximum(1 - v, 0) ** 3) - 1e-3 / np.maximum(v, 1)),
    "sigmoid": lambda v: 1 / (1 + np.exp(-v)),
}


def model(rng, dense=0, labels=40, sizes=(3, 9), **settings):
    X, extra, Y = random_problem(rng, 120, 60, labels, dense)
    X = features(X, extra)
    made = trees.balanced_tree(pifa(X, Y, 1), list(sizes), KMeans(passes=10, seed=0, threads=1))
    chosen = RankerSettings(**{"prune_below": 0.02, "tolerance": 0.05, **settings})
    return X, Y, *train_rankers(X, Y, made, chosen, seed=0, threads=2)


def raw_scores(ranker, X):
    """Compute the raw scores of all nodes of all levels by dense products."""
    W = slow_matrix(ranker.weights, X.dense.shape[1])
    return np.hstack([X.sparse.toarray(), X.dense]) @ W + ranker.weights.biases


def slow_search(ranker, X, beam, top, transform, allowed=None):
    """Search level by level with full sorts; returns {label: score} for each document.

    `beam` and `transform` may be lists with a value per level; None as transform is the raw score.
    """
    raw, tree = raw_scores(ranker, X), ranker.tree
    beams = beam if isinstance(beam, list) else [beam] * tree.depth
    mapped = transform if isinstance(transform, list) else [transform] * tree.depth
    offsets = np.append(0, np.cumsum(tree.sizes))
    results = []
    for row in range(X.rows):
        reached = {0: 1.0}
        for level in range(1, tree.depth + 1):
            pointers, scored = tree.child_ptr[level - 1], {}
            for parent, score in reached.items():
                for node in range(pointers[parent], pointers[parent + 1]):
                    value, own = raw[row, offsets[level - 1] + node], mapped[level - 1]
                    scored[node] = value if own is None else score * own(value)
            if level == tree.depth and allowed is not None:
                scored = {n: s for n, s in scored.items() if tree.label_of[n] in allowed}
            width = top if level == tree.depth else beams[level - 1]
            best = sorted(scored, key=lambda node: -scored[node])[:width]
            reached = {node: scored[node] for node in best}
        results.append({int(tree.label_of[node]): score for node, score in reached.items()})
    return results


def assert_rows(found, expected):
    for row, wanted in enumerate(expected):
        got = found[row]
        assert set(got.indices) == set(wanted)
        for label, score in zip(got.indices, got.data, strict=True):
            assert score == pytest.approx(wanted[label], rel=2e-4, abs=1e-6)


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("dense", [0, 6])
@pytest.mark.parametrize("beam", [2, 20])
def test_beam_search_agrees_with_the_reference_implementation(rng, name, dense, beam):
    X, _, ranker = model(rng, dense, score_transform=name)
    found = ranker.predict(X, 7, 2, beam)
    assert_rows(found, slow_search(ranker, X, beam, 7, TRANSFORMS[name]))
    for row in range(X.rows):
        assert (np.diff(found[row].data) <= 0).all()


def test_log_transforms_are_logarithms(rng):
    X, _, ranker = model(rng)
    plain = ranker.predict(X, 5, 1)
    logs = type(ranker)(ranker.tree, ranker.weights, RankerSettings(score_transform="log-l3-ordered"))
    np.testing.assert_allclose(np.exp(logs.predict(X, 5, 1).data), plain.data, rtol=1e-5)


def test_identity_returns_raw_scores(rng):
    X, _, ranker = model(rng, sizes=(), score_transform="identity")
    found = ranker.predict(X, 40, 1)
    raw = raw_scores(ranker, X)
    np.testing.assert_allclose(found.toarray(), raw[:, ranker.tree.node_of], rtol=1e-3, atol=1e-5)


def test_single_and_batch_prediction_agree(rng):
    X, _, ranker = model(rng, 3)
    together = ranker.predict(X, 5, 2)
    for row in range(0, X.rows, 7):
        alone = ranker.predict(X[row : row + 1], 5, 1)
        np.testing.assert_array_equal(alone.indices, together[row].indices)
        np.testing.assert_array_equal(alone.data, together[row].data)


def test_allowed_labels_are_found_even_with_a_narrow_beam(rng):
    X, _, ranker = model(rng)
    allowed = np.array([1, 5, 6])
    found = ranker.predict(X, 10, 2, 20, allowed)
    assert set(found.indices) <= {1, 5, 6}
    assert_rows(found, slow_search(ranker, X, 20, 10, TRANSFORMS["l3-ordered"], set(allowed)))
    # Even with a beam of one some allowed label is reached for every document.
    assert (np.diff(ranker.predict(X, 1, 2, 1, allowed).indptr) == 1).all()


def test_all_candidates_are_scored_whatever_the_beam(rng):
    X, Y, ranker = model(rng)
    candidates = sp.random(X.rows, Y.shape[1], 0.1, "csr", np.float32, rng)
    found = ranker.predict(X, 40, 2, 1, candidates=candidates)
    everything = slow_search(ranker, X, 100, 100, TRANSFORMS["l3-ordered"])
    for row in range(X.rows):
        assert set(found[row].indices) == set(candidates[row].indices)
        for label, score in zip(found[row].indices, found[row].data, strict=True):
            assert score == pytest.approx(everything[row][label], rel=2e-4, abs=1e-6)


def test_top_larger_than_the_number_of_labels(rng):
    X, _, ranker = model(rng)
    assert ranker.predict(X, 1000, 1, 100)[0].nnz == 40


def test_an_empty_document_is_scored_by_bias_alone(rng):
    _, _, ranker = model(rng, bias=1.0)
    empty = features(sp.csr_matrix((2, 60), dtype=np.float32))
    assert (np.diff(ranker.predict(empty, 3, 1).indptr) == 3).all()


@pytest.mark.parametrize(("kind", "hits"), [("true", 119), ("beam", 118), ("both", 118)])
def test_precision_on_training_documents_for_each_shortlist(rng, kind, hits):
    X, Y, ranker = model(rng, shortlist=kind, lambda_=0.01)
    best = ranker.predict(X, 1, 2, 20).indices
    assert X.rows == 120
    assert Y[np.arange(X.rows), best].sum() == pytest.approx(hits, abs=2)


def test_the_shortlist_is_the_union_of_predicted_and_true_parents():
    P = sp.csr_matrix(np.array([[0.9, 0, 0], [0, 0.2, 0]]))
    Y = sp.csr_matrix(np.array([[0, 0, 2.0], [0, 1.0, 0]]))
    np.testing.assert_array_equal(shortlist(P, Y).toarray(), [[1, 0, 1], [0, 1, 0]])
    np.testing.assert_array_equal(shortlist(None, Y).toarray(), [[0, 0, 1], [0, 1, 0]])
    np.testing.assert_array_equal(shortlist(P, None).toarray(), [[1, 0, 0], [0, 1, 0]])


def test_an_unknown_score_transform_is_an_error():
    with pytest.raises(TreetopError, match="unknown score transform 'l0-hinge': choose one of"):
        score_kind("l0-hinge")


@pytest.mark.parametrize("dense", [0, 6])
@pytest.mark.parametrize(
    ("beams", "names"),
    [
        ("2/5", "l3-hinge/.../identity"),
        ("3/1", "sigmoid/l1-hinge/l3-ordered"),
        ("1/9", "l3-hinge/identity/identity"),
    ],
)
def test_beams_and_score_transforms_by_level_agree_with_the_reference(rng, beams, names, dense):
    X, _, ranker = model(rng, dense, beam=beams, score_transform=names)
    mapped = [TRANSFORMS.get(at.score_transform) for at in ranker.settings.by_level(3)]
    found = ranker.predict(X, 7, 2)
    assert_rows(found, slow_search(ranker, X, [*map(int, beams.split("/")), 0], 7, mapped))
    # A beam that is passed to predict is that of all levels.
    assert_rows(ranker.predict(X, 7, 1, 4), slow_search(ranker, X, 4, 7, mapped))


def test_a_beam_of_one_keeps_the_best_node_and_a_raw_last_level_forgets_the_path():
    """By hand: two clusters of two labels; the better cluster has raw scores 0.2 and -3."""
    tree = trees.from_parents([np.array([0, 0, 1, 1])])

    def predicted(beam, transform):
        settings = RankerSettings(beam=beam, score_transform=transform)
        biases = np.array([0.5, 0.9]), np.array([2.0, 1.0]), np.array([0.2, -3.0])
        nothing = np.zeros(0, np.int32)
        clusters = [
            ClusterWeights(
                nothing,
                np.zeros(0, np.int64),
                nothing,
                np.zeros(0, np.float32),
                np.zeros((0, 2), np.float32),
                values.astype(np.float32),
            )
            for values in biases
        ]
        ranker = Ranker(tree, assemble(clusters, tree, 1, 1), settings)
        found = ranker.predict(features(sp.csr_matrix((1, 1), dtype=np.float32)), 4, 1)
        return [
            (label, round(score, 4))
            for label, score in zip(found.indices, found.data.tolist(), strict=True)
        ]

    assert predicted("1", "l1-hinge/identity") == [(2, 0.2), (3, -3.0)]
    assert predicted("2", "l1-hinge/identity") == [(0, 2.0), (1, 1.0), (2, 0.2), (3, -3.0)]
    best = [round(float(np.exp(-gap)), 4) for gap in (0.5, 0.5, 0.1 + 0.8, 0.1 + 4)]
    assert predicted(2, "l1-hinge") == list(zip(range(4), best, strict=True))


def test_negatives_by_level_are_those_of_each_level_alone():
    """``true/.../both``: the beam adds negatives to the labels, and to no level above."""

    def scores(kind):
        X, _, ranker = model(np.random.default_rng(0), shortlist=kind, beam=2)
        return raw_scores(ranker, X)

    upper = 3 + 9
    mixed, true, both = map(scores, ("true/.../both", "true", "both"))
    np.testing.assert_array_equal(mixed[:, :upper], true[:, :upper])
    assert abs(mixed[:, upper:] - true[:, upper:]).max() > 0.01
    assert abs(both[:, 3:upper] - true[:, 3:upper]).max() > 0.01
    np.testing.assert_array_equal(mixed, scores("both/true/both"))  # the first has no effect


def test_costs_and_bias_by_level_are_those_of_each_level_alone():
    made = {"lambda_": "0.5/.../0.05", "alpha": "1/.../3", "bias": "0/0/2"}
    _, _, listed = model(np.random.default_rng(0), **made)
    X, _, upper = model(np.random.default_rng(0), lambda_=0.5, alpha=1.0, bias=0.0)
    _, _, last = model(np.random.default_rng(0), lambda_=0.05, alpha=3.0, bias=2.0)
    split = sum(listed.tree.sizes[:2])
    found = raw_scores(listed, X)
    np.testing.assert_array_equal(found[:, :split], raw_scores(upper, X)[:, :split])
    np.testing.assert_array_equal(found[:, split:], raw_scores(last, X)[:, split:])
    assert not listed.weights.biases[:split].any()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"beam": "2/3/4"}, "beam '2/3/4' has 3 values, but the tree has 2 such levels"),
        ({"lambda_": "1/2"}, "lambda_ '1/2' has 2 values, but the tree has 3 such levels"),
        ({"score_transform": "identity/.../l3-hinge"}, "only the last levels may be identity"),
        ({"score_transform": "l3-hinge/log-sigmoid/identity"}, "must all be logarithms"),
    ],
)
def test_values_by_level_that_do_not_fit_are_an_error(rng, changes, message):
    with pytest.raises(TreetopError, match=message):
        model(rng, **changes)


@pytest.mark.parametrize(("dense", "labels"), [(0, 40), (5, 40), (4, 200)])
def test_a_search_from_given_nodes_equals_the_dense_product(rng, dense, labels):
    """P[t] among the children of P[t-1], with weights of level t alone."""
    X, Y, ranker = model(rng, dense, labels, sizes=(3, 6))
    tree, settings = ranker.tree, RankerSettings(prune_below=0.0, beam=5, bias=0.0)
    R = all_levels(Y, tree)[1]
    M = sp.csr_matrix(np.ones((X.rows, 3), np.float32))
    clusters = solve_level(X, R, M, tree.child_ptr[1], settings, **SOLVER_OPTIONS)
    above = sp.csr_matrix(rng.random((X.rows, 3)) * (rng.random((X.rows, 3)) < 0.7), dtype=np.float32)
    found = predicted_nodes(clusters, X, tree, 2, settings, threads=2, above=above).toarray()
    W = np.zeros((X.sparse.shape[1] + dense, 6))
    for number, cluster in enumerate(clusters):
        first = tree.child_ptr[1][number]
        start = 0
        for feature, end in zip(cluster.features, cluster.ends, strict=True):
            W[feature, first + cluster.children[start:end]] = cluster.values[start:end]
            start = end
        W[X.sparse.shape[1] :, first : first + cluster.biases.size] = cluster.dense
    raw = np.hstack([X.sparse.toarray(), X.dense]) @ W
    expected = TRANSFORMS["l3-ordered"](raw) * above.toarray()[:, tree.parents(2)]
    for row, scores in enumerate(expected):
        best = [node for node in np.argsort(-scores, kind="stable") if scores[node] > 0][:5]
        assert set(np.flatnonzero(found[row])) == set(best)
        np.testing.assert_allclose(found[row, best], scores[best], rtol=2e-3, atol=1e-6)


def test_ordered_transforms_rank_raw_scores_above_one(rng):
    X, _, ranker = model(rng, sizes=(), lambda_=1e-4)
    raw = raw_scores(ranker, X)[:, ranker.tree.node_of]
    beyond = (raw > 1.001).sum(axis=1) > 1
    assert beyond.sum() > 10
    for name, ties in (("l3-hinge", True), ("l3-ordered", False)):
        chosen = type(ranker)(ranker.tree, ranker.weights, RankerSettings(score_transform=name))
        found = chosen.predict(X, 2, 1)
        pairs = found.data.reshape(-1, 2)[beyond]
        assert (pairs[:, 0] == pairs[:, 1]).all() == ties
        if not ties:
            np.testing.assert_array_equal(found.indices[::2], raw.argmax(axis=1))
