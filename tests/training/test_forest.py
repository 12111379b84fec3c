"""Forests: number of trees, their views, and the mean of their scores."""

from dataclasses import replace

import numpy as np
import pytest

import treetop
from tests.conftest import random_problem
from tests.tiny import BRIEF, documents, same
from treetop.features.hybrid import features
from treetop.features.words.views import views_of
from treetop.labels.tree import flat, from_parents
from treetop.ranking.training import train_rankers
from treetop.runtime import Runtime
from treetop.runtime.progress import Reporter
from treetop.settings.schema import LinearSettings
from treetop.training.forest import build_tree, label_features, train_forests

WORDS = ["red", "green", "blue", "apple", "pear", "sea", "sky", "fire", "car", "boat", "tree", "grass"]


# All settings that `fit` would resolve from the data.
SETTINGS = replace(
    LinearSettings(), tree="4-L", trees=3, cost_sensitive=False, alpha=1.0, lambda_=0.1, seed=5
)
ALONE = Runtime(threads=1)


@pytest.fixture
def problem(rng):
    """60 documents with 40 sparse and 3 dense features, and 12 labels."""
    X, dense, Y = random_problem(rng, dense=3)
    return features(X, dense), Y


def assert_same_rankers(made, expected):
    assert len(made) == len(expected)
    for one, other in zip(made, expected, strict=True):
        arrays, others = one.arrays(), other.arrays()
        assert arrays.keys() == others.keys()
        for name, values in arrays.items():
            np.testing.assert_array_equal(values, others[name], err_msg=name)


@pytest.mark.parametrize(
    ("tree", "trees", "shapes"),
    [
        ("flat", 3, ["12"]),  # further trees would be identical
        ("4-L", 1, ["4-12"]),
        ("4-L", 3, ["4-12"] * 3),
        ("auto", 3, ["12"]),  # few labels
    ],
)
def test_identical_trees_are_trained_only_once(problem, tree, trees, shapes):
    rankers = train_forests(*problem, None, replace(SETTINGS, tree=tree, trees=trees), ALONE).rankers
    assert [str(ranker.tree) for ranker in rankers] == shapes


def test_each_tree_has_its_own_seed(problem):
    X, Y = problem
    rankers = train_forests(X, Y, None, SETTINGS, ALONE).rankers
    Z = label_features(X, Y, None, SETTINGS, 1)
    for number, ranker in enumerate(rankers):
        tree = build_tree(Z, SETTINGS, SETTINGS.seed + number, 1)
        np.testing.assert_array_equal(ranker.tree.label_of, tree.label_of)
    assert len({tuple(ranker.tree.label_of) for ranker in rankers}) == 3


class Steps(Reporter):
    def __init__(self):
        self.steps = []

    def step(self, name, total=None):
        self.steps.append((name, total))
        return super().step(name, total)


def test_trees_trained_in_parallel_equal_those_trained_in_sequence(problem):
    expected = train_forests(*problem, None, SETTINGS, ALONE).rankers
    reporter = Steps()
    many = Runtime(threads=9, reporter=reporter)  # three per tree
    assert_same_rankers(train_forests(*problem, None, SETTINGS, many).rankers, expected)
    trees = [(f"tree {number} of 3, label tree", None) for number in (1, 2, 3)]
    assert reporter.steps == [("label features", None), *trees, ("rankers", 3)]


def test_a_tree_passed_to_fit_is_used_unchanged(problem):
    X, Y = problem
    given = from_parents([np.arange(12) % 3])
    (ranker,) = train_forests(X, Y, None, SETTINGS, ALONE, tree=given).rankers
    assert ranker.tree is given
    options = {"seed": SETTINGS.seed, "threads": 1, "report": Reporter()}
    alone = train_rankers(X, Y, given, SETTINGS.ranker(), **options, weights=None, head=None)
    assert_same_rankers([ranker], alone)


def test_without_a_tree_no_reported_step_speaks_of_one(problem):
    reporter, views = Steps(), views_of([[0], [1]], [25, 15])
    runtime = Runtime(threads=1, reporter=reporter)
    train_forests(*problem, None, SETTINGS, runtime, tree=flat(12), views=views)
    assert [name for name, _ in reporter.steps] == ["model 1 of 2, rankers", "model 2 of 2, rankers"]


def test_flat_and_given_trees_are_trained_once_per_view(problem):
    views = views_of([[0], [1]], [25, 15])
    rankers = train_forests(*problem, None, SETTINGS, ALONE, tree=flat(12), views=views).rankers
    assert [str(ranker.tree) for ranker in rankers] == ["12", "12"]
    sparse = [np.flatnonzero(np.diff(ranker.weights.starts[:, 0])) for ranker in rankers]
    used = [columns[columns < 40] for columns in sparse]
    assert used[0].max() < 25 <= used[1].min()


def test_trees_use_views_in_turn_with_rescaled_weights(problem):
    X, Y = problem
    views = views_of([[0], [1]], [25, 15])
    rankers = train_forests(X, Y, None, SETTINGS, ALONE, views=views).rankers
    for number, ranker in enumerate(rankers):
        view = views[number % 2]
        (alone,) = train_forests(
            view.of(X, 1), Y, None, replace(SETTINGS, seed=5 + number, trees=1), ALONE
        ).rankers
        np.testing.assert_array_equal(ranker.tree.label_of, alone.tree.label_of)
        found = ranker.predict(X, 12, 1, 100).toarray()
        expected = alone.predict(view.of(X, 1), 12, 1, 100).toarray()
        np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.fixture(scope="module")
def corpus():
    random = np.random.default_rng(0)
    texts, labels = [], []
    for _ in range(300):
        chosen = random.choice(len(WORDS), 5, replace=False)
        texts.append(" ".join(WORDS[word] for word in chosen))
        labels.append([f"L{(int(chosen[0]) * 7 + int(chosen[1])) % 40}", f"M{chosen[2]}"])
    return texts, labels


@pytest.mark.parametrize("tree", ["flat", "4-16-L"])
def test_trees_with_views_average_independent_models(corpus, tree):
    texts, labels = corpus
    settings = {"tree": tree, "prune_below": 0.01, "beam": 64}  # every label is reached
    together = treetop.XRLinear(ngrams="word:1|word:2+word:1@9", trees=2, **settings)
    together.fit(texts, labels)
    assert len(together.rankers_) == 2
    alone = [
        treetop.XRLinear(ngrams=ngrams, trees=1, **settings, seed=seed)
        for seed, ngrams in enumerate(("word:1", "word:2+word:1@9"))
    ]
    means = [one.fit(texts, labels).predict_scores(texts[:50], 60).toarray() for one in alone]
    scores = together.predict_scores(texts[:50], 60).toarray()
    np.testing.assert_allclose(scores, np.mean(means, axis=0), atol=2e-3)


def test_a_flat_tree_is_trained_once_per_view(corpus):
    made = treetop.XRLinear(ngrams="word:1|word:2", tree="flat", trees=5).fit(*corpus)
    assert len(made.rankers_) == 2
    assert len(treetop.XRLinear(ngrams="word:1", tree="flat", trees=5).fit(*corpus).rankers_) == 1


def test_a_model_with_views_can_be_saved_loaded_and_explained(corpus, tmp_path):
    made = treetop.XRLinear(ngrams="word:1+word:1-2@9|word:2", tree="4-16-L", trees=3).fit(*corpus)
    made.save(tmp_path / "m")
    again = treetop.load(str(tmp_path / "m"))
    text = corpus[0][0]
    assert again.predict([text], 3) == made.predict([text], 3)
    for name, score in made.predict([text], len(made.classes_))[0][:9]:
        why = again.explain(text, name, words=99)
        assert why.score == pytest.approx(score, abs=1e-5)
        raw = why.raw_score
        parts = why.word_sum + why.encoder + why.bias
        assert parts == pytest.approx(raw, abs=1e-4)


def test_a_forest_averages_its_trees(numpy_docs):
    train = numpy_docs.split("train")
    model = treetop.XRLinear(leaf=20, branching=4, trees=3, flat_labels=0)
    model.fit(train.texts, train.labels)
    assert len({str(ranker.tree.label_of) for ranker in model.rankers_}) == 3
    found = model.predict_scores(train.texts[:5], k=3)
    labels = len(model.classes_)
    everything = [
        ranker.predict(
            model.model_.features(train.texts[:5], treetop.Runtime()), labels, 1, 100
        ).toarray()
        for ranker in model.rankers_
    ]
    mean = np.mean(everything, axis=0)
    for row in range(5):
        assert found[row].data[0] == pytest.approx(mean[row, found[row].indices[0]], rel=0.05)


def test_few_labels_give_a_flat_tree_unless_a_tree_is_set(numpy_docs):
    train = numpy_docs.split("train")
    flat = treetop.XRLinear().fit(train.texts, train.labels)
    assert [ranker.tree.depth for ranker in flat.rankers_] == [1] * len(flat.settings_.views())
    deep = treetop.XRLinear(tree="4-16-L", trees=1).fit(train.texts, train.labels)
    assert [str(ranker.tree) for ranker in deep.rankers_] == [f"4-16-{len(deep.classes_)}"]


def test_trees_can_use_different_ngrams(encoder, tmp_path):
    texts, labels = documents(120)
    settings = {**BRIEF, "encoder": encoder, "tree": "6-L", "trees": 2, "ngrams": "word:1|word:2"}
    model = treetop.XRTransformer(**settings).fit(texts, labels)
    used = [set(np.flatnonzero(np.diff(one.weights.starts[:, 0]))) for one in model.rankers_]
    words = model.model_.feature_map.words.widths[0]
    assert max(used[0]) < words <= min(used[1])
    model.save(tmp_path / "m")
    loaded = treetop.load(str(tmp_path / "m"))
    assert same(loaded.predict_scores(texts, 5), model.predict_scores(texts, 5))
    alone = treetop.XRTransformer(**settings, words=False).fit(texts, labels)
    assert len(alone.rankers_) == 2
    assert alone.n_features_in_ == 16  # the encoder's alone
