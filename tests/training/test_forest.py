"""Forests: how many trees, what each of them sees, and the mean of their scores."""

import numpy as np
import pytest

import treetop
from tests.tiny import BRIEF, documents, same

WORDS = ["red", "green", "blue", "apple", "pear", "sea", "sky", "fire", "car", "boat", "tree", "grass"]


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
def test_trees_with_views_are_models_of_their_own_averaged(corpus, tree):
    texts, labels = corpus
    together = treetop.XRLinear(ngrams="word:1|word:2+word:1@9", tree=tree, trees=2, prune_below=0.01)
    together.fit(texts, labels)
    assert len(together.rankers_) == 2
    alone = [
        treetop.XRLinear(ngrams=ngrams, tree=tree, trees=1, prune_below=0.01, seed=seed)
        for seed, ngrams in enumerate(("word:1", "word:2+word:1@9"))
    ]
    means = [one.fit(texts, labels).predict_scores(texts[:50], 60).toarray() for one in alone]
    scores = together.predict_scores(texts[:50], 60).toarray()
    np.testing.assert_allclose(scores, np.mean(means, axis=0), atol=2e-3)


def test_a_flat_tree_is_there_once_a_view(corpus):
    made = treetop.XRLinear(ngrams="word:1|word:2", tree="flat", trees=5).fit(*corpus)
    assert len(made.rankers_) == 2
    assert len(treetop.XRLinear(ngrams="word:1", tree="flat", trees=5).fit(*corpus).rankers_) == 1


def test_a_model_with_views_is_saved_loaded_and_explained(corpus, tmp_path):
    made = treetop.XRLinear(ngrams="word:1+word:1-2@9|word:2", tree="4-16-L", trees=3).fit(*corpus)
    made.save(tmp_path / "m")
    again = treetop.load(str(tmp_path / "m"))
    text = corpus[0][0]
    assert again.predict([text], 3) == made.predict([text], 3)
    for name, score in made.predict([text], len(made.classes_))[0][:9]:
        why = again.explain(text, name, words=99)
        assert why.score == pytest.approx(score, abs=1e-5)
        raw = np.mean([sum(node.raw for node in path.nodes) for path in why.paths])
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


def test_few_labels_need_no_tree_and_a_tree_can_be_forced(numpy_docs):
    train = numpy_docs.split("train")
    flat = treetop.XRLinear().fit(train.texts, train.labels)
    assert [ranker.tree.depth for ranker in flat.rankers_] == [1] * len(flat.settings_.views())
    deep = treetop.XRLinear(tree="4-16-L", trees=1).fit(train.texts, train.labels)
    assert str(deep.rankers_[0].tree).startswith("4-16-")


def test_trees_may_see_different_words(encoder, tmp_path):
    texts, labels = documents(120)
    settings = {**BRIEF, "encoder": encoder, "tree": "6-L", "trees": 2, "ngrams": "word:1|word:2"}
    model = treetop.XRTransformer(**settings).fit(texts, labels)
    used = [set(np.flatnonzero(np.diff(one.weights.row_ptr))) for one in model.rankers_]
    words = model.model_.feature_map.words.widths[0]
    assert used[0]
    assert max(used[0]) < words <= min(used[1])
    model.save(tmp_path / "m")
    loaded = treetop.load(str(tmp_path / "m"))
    assert same(loaded.predict_scores(texts, 5), model.predict_scores(texts, 5))
    alone = treetop.XRTransformer(**settings, words=False).fit(texts, labels)
    assert len(alone.rankers_) == 2
    assert alone.predict(texts[:1], 1)[0]
