"""Documents to learn from, those held back, and what a document counts for."""

import numpy as np
import pytest
import scipy.sparse as sp

import treetop
from tests.tiny import BRIEF, documents, same
from treetop.errors import TreetopError


def test_relevance_and_weights_matter_and_zero_weight_is_absence(encoder):
    texts, labels = documents(48)
    plain = treetop.XRTransformer(encoder=encoder, **BRIEF).fit(texts, labels)
    names = list(plain.classes_)
    Y = sp.csr_matrix([[1.0 if name in line else 0.0 for name in names] for line in labels])
    as_matrix = treetop.XRTransformer(encoder=encoder, **BRIEF).fit(texts, Y, label_names=names)
    assert same(as_matrix.predict_scores(texts, 5), plain.predict_scores(texts, 5))
    graded = Y.copy()
    graded.data[::2] = 0.25
    relevant = treetop.XRTransformer(encoder=encoder, **BRIEF).fit(texts, graded, label_names=names)
    assert not same(relevant.predict_scores(texts, 5), plain.predict_scores(texts, 5))
    weights = np.ones(48)
    weights[:8] = 0
    absent = treetop.XRTransformer(encoder=encoder, **BRIEF).fit(
        texts, Y, label_names=names, sample_weight=weights
    )
    without = treetop.XRTransformer(encoder=encoder, **BRIEF).fit(texts[8:], Y[8:], label_names=names)
    assert same(absent.predict_scores(texts, 5), without.predict_scores(texts, 5))
    weights[:8] = 5
    heavy = treetop.XRTransformer(encoder=encoder, **BRIEF).fit(
        texts, Y, label_names=names, sample_weight=weights
    )
    assert not same(heavy.predict_scores(texts, 5), plain.predict_scores(texts, 5))


def test_validation_takes_what_fit_takes_and_says_what_does_not_fit(encoder):
    texts, labels = documents(32)
    held, held_labels = documents(8, seed=5)
    model = treetop.XRTransformer(encoder=encoder, **BRIEF)
    first = np.array([line[0] for line in held_labels])
    model.fit(texts, labels, validation=(held, first))
    known = treetop.XRTransformer(encoder=encoder, **BRIEF)
    known.fit(texts, labels, validation=(held, [[*line, "unknown"] for line in held_labels]))
    for wrong, message in [
        ((held, held_labels[:3]), "validation: 8 documents but labels for 3"),
        ((held, list(first)), "give a list of names"),
        ((held, np.ones((8, 2))), "validation labels: 2 columns"),
        ((held, [["unknown"]] * 8), "validation: no document has a label that the training data has"),
    ]:
        with pytest.raises(TreetopError, match=message):
            model.fit(texts, labels, validation=wrong)
