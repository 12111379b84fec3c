import numpy as np
import pytest
import scipy.sparse as sp

import treetop
from treetop.features.hybrid import features
from treetop.features.words.views import views_of

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


@pytest.mark.parametrize("threads", [1, 3])
def test_a_view_has_the_columns_it_sees(threads):
    random = np.random.default_rng(1)
    sparse = sp.random(50, 30, 0.3, format="csr", dtype=np.float32, random_state=random)
    X = features(sparse, random.random((50, 4), np.float32))
    for view, kept in zip(views_of([[0, 2], [1]], [10, 5, 15]), ([0, 2], [1]), strict=True):
        seen = view.of(X, threads)
        columns = np.repeat([number in kept for number in range(3)], [10, 5, 15])
        slow = sparse.toarray() * columns * np.sqrt(3 / len(kept))
        np.testing.assert_allclose(seen.sparse.toarray(), slow, rtol=1e-6)
        assert seen.sparse.nnz == np.count_nonzero(slow)
        assert seen.dense is X.dense


def test_no_view_where_all_trees_see_all():
    assert views_of([[0, 1]], [3, 4]) == []
    assert views_of([[0, 1], [1, 0]], [3, 4]) == []


def test_what_no_text_has_is_not_seen():
    assert views_of([[0, 1], [1], [0]], [3, 0]) == []
    two = views_of([[0, 1], [2], [1]], [3, 0, 4])
    assert [view.seen.tolist() for view in two] == [[1] * 3 + [0] * 4, [0] * 3 + [1] * 4]
    assert [view.scale for view in two] == [pytest.approx(2**0.5)] * 2


def test_texts_too_short_for_some_ngrams():
    made = treetop.XRLinear(ngrams="word:1|char:4").fit(["a b", "b c", "c"], [["x"], ["y"], ["x"]])
    assert len(made.rankers_) == 1
    assert made.predict(["a"], 1)[0][0][0] == "x"


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
