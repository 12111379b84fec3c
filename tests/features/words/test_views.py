"""Views: the columns that a tree of a forest sees, and how they are scaled."""

import numpy as np
import pytest
import scipy.sparse as sp

import treetop
from treetop.features.hybrid import features
from treetop.features.words.views import views_of


@pytest.mark.parametrize("threads", [1, 3])
def test_a_view_keeps_its_columns_and_rescales(threads):
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


def test_complete_views_are_left_out():
    assert views_of([[0, 1]], [3, 4]) == []
    assert views_of([[0, 1], [1, 0]], [3, 4]) == []


def test_analysers_without_features_are_left_out():
    assert views_of([[0, 1], [1], [0]], [3, 0]) == []
    two = views_of([[0, 1], [2], [1]], [3, 0, 4])
    assert [view.seen.tolist() for view in two] == [[1] * 3 + [0] * 4, [0] * 3 + [1] * 4]
    assert [view.scale for view in two] == [pytest.approx(2**0.5)] * 2


def test_texts_too_short_for_some_ngrams():
    model = treetop.XRLinear(ngrams="word:1|char:4").fit(["a b", "b c", "c"], [["x"], ["y"], ["x"]])
    assert len(model.rankers_) == 1
    assert model.predict(["a"], 1)[0][0][0] == "x"
