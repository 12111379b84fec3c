"""Features of held-out documents without the n-grams that no other document has."""

import numpy as np
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import treetop
from treetop.features.hybrid import features
from treetop.training.known import KnownFeatures


@given(st.integers(0, 1000))
def test_rows_are_those_of_the_slow_twin(seed):
    rng = np.random.default_rng(seed)
    X = sp.random(12, 15, 0.2, "csr", np.float32, rng)
    held, widths = np.sort(rng.permutation(12)[:5]), [6, 9]
    others = np.setdiff1d(np.arange(12), held)
    found = KnownFeatures.without(features(X), held, widths).of(features(X[held]))
    expected = X[held].toarray()
    known = (X[others].toarray() != 0).any(axis=0)
    for row in expected:
        for block in (row[:6], row[6:]):
            own = known[:6] if block.size == 6 else known[6:]
            length = np.linalg.norm(block)
            block[~own] = 0
            if block.any():
                block *= length / np.linalg.norm(block)
    np.testing.assert_allclose(found.sparse.toarray(), expected, rtol=1e-5)
    assert (np.diff(found.sparse.indptr) == (expected != 0).sum(1)).all()


def test_held_out_texts_look_like_new_ones():
    """Words that only they had made their other features smaller than those of new texts."""
    words = ["red", "green", "blue"]
    texts = [f"{words[n % 3]} {words[n // 3 % 3]} own{n}" for n in range(60)]
    model = treetop.XRLinear(ngrams="word:1", calibration=False).fit(texts, [["a"]] * 60)
    tfidf = model.model_.feature_map.words
    held = np.array([4, 7, 30])
    X = features(tfidf.transform(texts))
    seen = KnownFeatures.without(X, held, tfidf.widths).of(X[held])
    new = [" ".join(text.split()[:2]) for text in np.array(texts)[held]]
    np.testing.assert_allclose(seen.sparse.toarray(), tfidf.transform(new).toarray(), rtol=1e-6)
