"""Φ_cat: texts, words and vectors to the one matrix of features that rankers see."""

import numpy as np
import pytest
import scipy.sparse as sp

from treetop.errors import TreetopError
from treetop.features.encoders.handle import EncoderHandle
from treetop.features.encoders.wordvectors import WordVectors
from treetop.features.feature_map import FeatureMap
from treetop.features.hybrid import cat, center_of, on_dense_half
from treetop.features.words.tfidf import fit_tfidf
from treetop.runtime import Runtime
from treetop.settings.schema import LinearSettings

RUNTIME = Runtime(threads=1)
TEXTS = ["red apple", "green pear", "", "red red sky"]
UNSEEN = ["a green sky", "red sea", "nothing known"]


@pytest.fixture
def words():
    return fit_tfidf(LinearSettings(ngrams="word:1").analysers(), TEXTS, 1)[0]


@pytest.fixture
def vectors(rng):
    known = ["red", "green", "sky", "sea"]
    return WordVectors(known, rng.standard_normal((4, 3)).astype(np.float32))


@pytest.fixture
def both(words, vectors):
    """A map with words and an encoder."""
    widths = (words.features, vectors.width)
    return FeatureMap(widths, words, EncoderHandle.holding(vectors, 16), dense_weight=0.5)


def assert_equal(actual, expected):
    np.testing.assert_array_equal(actual.sparse.toarray(), expected.sparse.toarray())
    np.testing.assert_array_equal(actual.dense, expected.dense)


def test_join_is_cat_with_the_weight_and_the_center_of_the_map(both, rng):
    tfidf = sp.random(6, both.widths[0], 0.5, "csr", np.float32, rng)
    dnn = rng.standard_normal((6, 3)).astype(np.float32)
    assert_equal(both.join(tfidf, dnn), cat(tfidf, dnn, 0.5))
    centered = both.centered_on(dnn)
    assert_equal(centered.join(tfidf, dnn), cat(tfidf, dnn, 0.5, center_of(dnn)))


def test_centered_on_returns_a_new_map_and_keeps_the_old_one(both, rng):
    dnn = rng.standard_normal((6, 3)).astype(np.float32)
    centered = both.centered_on(dnn)
    assert both.center is None
    np.testing.assert_array_equal(centered.center, center_of(dnn))
    # everything else is shared
    assert (centered.widths, centered.dense_weight) == (both.widths, both.dense_weight)
    assert centered.words is both.words
    assert centered.encoder is both.encoder


def test_features_of_texts_join_tfidf_and_vectors(both, words, vectors):
    tfidf, dnn = words.transform(UNSEEN, 1), vectors.embed_texts(UNSEEN)
    assert_equal(both.of_texts(iter(UNSEEN), RUNTIME), both.join(tfidf, dnn))
    centered = both.centered_on(vectors.embed_texts(TEXTS))
    assert_equal(centered.of_texts(UNSEEN, RUNTIME), centered.join(tfidf, dnn))


def test_without_an_encoder_the_features_are_sparse_only(words):
    actual = FeatureMap((words.features, 0), words).of_texts(UNSEEN, RUNTIME)
    assert actual.widths == (words.features, 0)
    np.testing.assert_array_equal(actual.sparse.toarray(), words.transform(UNSEEN, 1).toarray())


def test_a_map_without_words_has_the_dense_half_only(words, vectors):
    handle = EncoderHandle.holding(vectors, 16)
    actual = FeatureMap((0, 3), words, handle, sees_words=False).of_texts(UNSEEN, RUNTIME)
    assert actual.widths == (0, 3)
    dnn = vectors.embed_texts(UNSEEN)
    lengths = np.linalg.norm(dnn, axis=1, keepdims=True)
    expected = np.divide(dnn, lengths, out=np.zeros_like(dnn), where=lengths > 0)
    np.testing.assert_allclose(actual.dense, expected, rtol=1e-6)


def test_a_map_of_matrices_refuses_texts():
    matrices = FeatureMap((5, 2))
    assert matrices.reads_texts is False
    with pytest.raises(TreetopError) as error:
        matrices.of_texts(TEXTS, RUNTIME)
    assert str(error.value) == (
        "this model was trained on a feature matrix, not on text: give a matrix, or texts with "
        "features="
    )


def test_weights_of_a_head_follow_the_dense_weight_and_the_center(both, rng):
    dnn = rng.standard_normal((6, 3)).astype(np.float32)
    weight, bias = rng.standard_normal((2, 3)).astype(np.float32), np.array([1, -1], np.float32)
    for feature_map in (both, both.centered_on(dnn)):
        actual = feature_map.on_dense_half(weight, bias, dnn)
        expected = on_dense_half(weight, bias, dnn, 0.5, feature_map.center)
        for values, others in zip(actual, expected, strict=True):
            np.testing.assert_array_equal(values, others)
