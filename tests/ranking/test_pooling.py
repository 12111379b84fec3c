"""The pool of candidates of several trees, compared with scoring every label in every tree."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import treetop
from tests.conftest import random_problem
from tests.ranking.test_beam import raw_scores
from treetop.features.hybrid import features
from treetop.labels import tree as trees
from treetop.labels.kmeans import KMeans
from treetop.labels.pifa import pifa
from treetop.ranking import pooling
from treetop.ranking.pooling import best_of_trees
from treetop.ranking.scores import score_kind
from treetop.ranking.training import train_rankers
from treetop.settings.parts import RankerSettings

LABELS = 60
LOGS = {
    "l3-hinge": lambda v: -(np.maximum(1 - v, 0) ** 3),
    "sigmoid": lambda v: -np.logaddexp(0, -v),
    "log-sigmoid": lambda v: -np.logaddexp(0, -v),
    "identity": lambda v: v,
}
MIXED = "l3-hinge/.../identity"


def forest(transform, shapes, seed=0, dense=0):
    """A ranker per shape, each on a tree of its own."""
    rng = np.random.default_rng(seed)
    X, extra, Y = random_problem(rng, 80, 50, LABELS, dense)
    X = features(X, extra)
    options = RankerSettings(prune_below=0.02, tolerance=0.1, score_transform=transform, beam=3)
    rankers = []
    for number, sizes in enumerate(shapes):
        means = KMeans(passes=5, seed=seed + number, threads=1)
        tree = trees.balanced_tree(pifa(X, Y, 1), list(sizes), means)
        rankers.extend(train_rankers(X, Y, tree, options, seed=number, threads=1))
    return X, rankers


def slow_best(rankers, X, k, beam, transform, allowed=None, candidates=None):
    """Labels below any tree's final beam, by their mean over all trees: {label: score} per document."""
    last = transform.split("/")[-1]
    kind = score_kind(last)
    results = []
    raws = [raw_scores(ranker, X) for ranker in rankers]
    for row in range(X.rows):
        pool, by_tree = set(), []
        for ranker, raw in zip(rankers, raws, strict=True):
            tree, offsets = ranker.tree, np.append(0, np.cumsum(ranker.tree.sizes))
            scores, reached = np.zeros(1), np.zeros(1, bool)
            reached[0] = True
            for level in range(1, tree.depth + 1):
                parents = tree.parents(level)
                name = last if level == tree.depth else transform.split("/")[0]
                own = LOGS[name](raw[row, offsets[level - 1] : offsets[level]])
                scores = own if name == "identity" else scores[parents] + own
                reached = reached[parents]
                if level < tree.depth:
                    order = np.argsort(-np.where(reached, scores, -np.inf), kind="stable")
                    kept = [node for node in order if reached[node]][:beam]
                    reached = np.isin(np.arange(reached.size), kept)
            pool |= set(tree.label_of[reached].tolist())
            by_label = np.empty(LABELS)
            by_label[tree.label_of] = np.exp(scores) if kind.exponentiate else scores
            by_tree.append(by_label)
        pool = set(candidates[row].indices.tolist()) if candidates is not None else pool
        mean = np.mean(by_tree, axis=0)
        best = sorted(pool, key=lambda label: (-mean[label], label))[:k]
        results.append({label: mean[label] for label in best})
    return results


def assert_same(found, expected):
    for row, wanted in enumerate(expected):
        labels, scores = found[row].indices, found[row].data
        assert len(labels) == len(wanted)
        np.testing.assert_allclose(scores, list(wanted.values()), rtol=2e-3, atol=1e-5)
        for label, score in zip(labels.tolist(), scores.tolist(), strict=True):
            if label in wanted:  # else it ties with the last one, up to rounding
                assert score == pytest.approx(wanted[label], rel=2e-3, abs=1e-5)


SHAPES = {"trees": [(3, 12), (3, 12), (4,)], "flat": [(), ()], "mixed": [(6,), (), (2, 8)]}


@pytest.mark.parametrize("dense", [0, 5])
@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("transform", [*LOGS, MIXED])
def test_the_best_of_the_pool_agree_with_scoring_everything(transform, shapes, dense):
    X, rankers = forest(transform, SHAPES[shapes], dense=dense)
    for k in (1, 4, LABELS):
        found = best_of_trees(rankers, X, k, 2, beam=3)
        assert_same(found, slow_best(rankers, X, k, 3, transform))


@pytest.mark.parametrize("dense", [0, 5])
@pytest.mark.parametrize("shapes", [[(2,), (3,), (2, 3)], [(3, 12), (3, 12), (4,)], [(2, 6, 20), ()]])
@pytest.mark.parametrize("transform", [*LOGS, MIXED])
def test_pools_of_many_labels_are_narrowed_tree_by_tree(transform, shapes, dense, monkeypatch):
    """Some clusters have more children than a vector, and paths begin on all levels."""
    monkeypatch.setattr(pooling, "FEW", 0)
    X, rankers = forest(transform, shapes, dense=dense)
    for k in (1, 4, LABELS):
        found = best_of_trees(rankers, X, k, 2, beam=1)
        assert_same(found, slow_best(rankers, X, k, 1, transform))


def test_candidates_are_the_pool_themselves():
    X, rankers = forest("l3-hinge", SHAPES["trees"])
    candidates = sp.random(X.rows, LABELS, 0.2, "csr", np.float32, np.random.default_rng(1))
    found = best_of_trees(rankers, X, 5, 2, beam=1, candidates=candidates)
    assert_same(found, slow_best(rankers, X, 5, 1, "l3-hinge", candidates=candidates))
    allowed = np.arange(0, LABELS, 3)
    both = best_of_trees(rankers, X, 5, 2, 1, allowed, candidates)
    mask = np.isin(np.arange(LABELS), allowed)
    candidates = sp.csr_matrix(candidates.multiply(mask))
    candidates.eliminate_zeros()
    assert_same(both, slow_best(rankers, X, 5, 1, "l3-hinge", candidates=candidates))


def test_allowed_labels_are_the_only_ones():
    X, rankers = forest("l3-hinge", SHAPES["trees"])
    allowed = np.array([3, 17, 40, 41])
    found = best_of_trees(rankers, X, 9, 1, beam=3, allowed_labels=allowed)
    assert set(found.indices) <= set(allowed.tolist())
    assert (np.diff(found.indptr) >= 1).all()


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(sorted(LOGS)),
    st.lists(st.sampled_from([(), (4,), (3, 9), (2, 6, 20)]), min_size=1, max_size=4),
    st.integers(1, 6),
    st.integers(0, 99),
)
def test_fewer_labels_are_the_first_of_more(transform, shapes, beam, seed):
    X, rankers = forest(transform, shapes, seed)
    every = best_of_trees(rankers, X, LABELS, 2, beam)
    for k in (1, 2, 5, 17):
        some = best_of_trees(rankers, X, k, 1, beam)
        for row in range(X.rows):
            whole, part = every[row], some[row]
            np.testing.assert_array_equal(part.indices, whole.indices[:k])
            np.testing.assert_array_equal(part.data, whole.data[:k])
    alone = best_of_trees(rankers, X[5:6], 7, 1, beam)
    np.testing.assert_array_equal(alone.indices, every[5].indices[:7])
    np.testing.assert_array_equal(alone.data, every[5].data[:7])


TEXTS = [
    f"{a} {b} {c}" for a in ("red", "green", "blue") for b in ("apple", "boat", "sky") for c in "xyzuvw"
]
NAMES = [text.split() for text in TEXTS]


@pytest.mark.parametrize("transform", ["auto", "log-sigmoid", "log-l3-hinge", "identity"])
def test_a_forest_ranks_well_with_every_transform(transform):
    """An unlisted label used to count 0, which is more than any logarithm."""
    chosen = {"tree": "3-6-L", "trees": 3, "beam": 2, "score_transform": transform}
    model = treetop.XRLinear(**chosen).fit(TEXTS, NAMES)
    assert model.score(TEXTS, NAMES) == 1.0


@pytest.mark.parametrize("combine", ["average", "rank", "sigmoid", "softmax"])
def test_fewer_labels_of_an_ensemble_are_the_first_of_more(combine):
    members = [
        treetop.XRLinear(tree="4-L", trees=2, beam=1, ngrams=ngrams, seed=seed).fit(TEXTS, NAMES)
        for seed, ngrams in enumerate(("word:1", "char:2", "word:1-2"))
    ]
    model = treetop.Ensemble(members, combine)
    every = model.predict(TEXTS, k=12)
    for k in (1, 3, 7):
        assert model.predict(TEXTS, k=k) == [row[:k] for row in every]
        assert model.predict(TEXTS[4:5], k=k)[0] == every[4][:k]


def test_score_is_the_p_at_1_of_evaluate():
    model = treetop.XRLinear(tree="4-L", trees=3, beam=1).fit(TEXTS, NAMES)
    assert model.score(TEXTS, NAMES) == model.evaluate(TEXTS, NAMES, (1, 3, 5, 10))["P@1"]
