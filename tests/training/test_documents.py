"""Training documents, held-out documents and document weights."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import treetop
from tests.tiny import BRIEF, documents, same
from treetop.errors import TreetopError
from treetop.settings.schema import TransformerSettings
from treetop.training.documents import counted_rows, held_rows, read_documents

TEXTS = [f"text {number}" for number in range(8)]
LABELS = [["a"], ["b"]] * 4


def read(**options):
    """Read documents as `fit` does, with options in place of the defaults."""
    arguments = {"documents": TEXTS, "y": LABELS, "names": None, "weights": None, "validation": None}
    share = options.pop("share", 0.0)
    settings = replace(TransformerSettings(), validation=share, seed=3)
    return read_documents(settings, **{**arguments, **options})


def test_without_validation_nothing_is_held_out():
    data = read(documents=iter(TEXTS))
    assert data.texts == TEXTS
    assert data.Y.toarray().tolist() == [[1, 0], [0, 1]] * 4
    assert data.classes.tolist() == ["a", "b"]
    assert data.weights is None
    assert data.held_texts == []
    assert data.held_labels.shape == (0, 2)


def test_a_fraction_of_the_documents_is_held_out_at_random():
    out = held_rows(8, 0.25, 3)
    assert out.tolist() == sorted(np.random.default_rng(3).permutation(8)[:2])
    kept = [row for row in range(8) if row not in out]
    data = read(share=0.25, weights=np.arange(1, 9))
    assert data.held_texts == [TEXTS[row] for row in out]
    assert data.held_labels.toarray().tolist() == [[1 - row % 2, row % 2] for row in out]
    assert data.texts == [TEXTS[row] for row in kept]
    assert data.Y.toarray().tolist() == [[1 - row % 2, row % 2] for row in kept]
    assert data.weights.tolist() == [row + 1 for row in kept]


@pytest.mark.parametrize("share", [0.01, 0.99])
def test_a_fraction_that_leaves_one_side_empty_is_an_error(share):
    with pytest.raises(TreetopError) as error:
        held_rows(8, share, 0)
    assert str(error.value) == (
        f"validation={share} of 8 documents leaves none on one side: choose a fraction that leaves "
        "documents to train on and to validate on"
    )


def test_documents_with_zero_weight_are_dropped():
    data = read(weights=[0, 1, 2, 0, 1, 1, 1, 1])
    assert data.texts == [TEXTS[row] for row in (1, 2, 4, 5, 6, 7)]
    assert data.Y.toarray().tolist() == [[0, 1], [1, 0], [1, 0], [0, 1], [1, 0], [0, 1]]
    assert data.weights.tolist() == [1, 2, 1, 1, 1, 1]
    assert counted_rows(np.array([0.0, 2.0, 0.0])).tolist() == [1]
    assert counted_rows(np.array([1.0, 2.0])) is None


def test_validation_labels_are_aligned_with_the_training_labels():
    data = read(validation=(["x", "y"], [["b", "unknown"], ["unknown"]]))
    assert data.texts == TEXTS
    assert data.held_texts == ["x", "y"]
    assert data.held_labels.toarray().tolist() == [[0, 1], [0, 0]]


def test_relevance_and_weights_are_used_and_zero_weight_drops_a_document(encoder):
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


def validation_of(model):
    """Return level, step and P@1 of each validation."""
    return [(entry["level"], entry["step"], entry["validation P@1"]) for entry in model.history_]


def test_validation_accepts_the_same_forms_as_fit_and_explains_errors(encoder):
    texts, labels = documents(32)
    held, held_labels = documents(8, seed=5)
    model = treetop.XRTransformer(encoder=encoder, **BRIEF)
    first = np.array([line[0] for line in held_labels])
    model.fit(texts, labels, validation=(held, first))
    known = treetop.XRTransformer(encoder=encoder, **BRIEF)
    known.fit(texts, labels, validation=(held, [[*line, "unknown"] for line in held_labels]))
    plain = treetop.XRTransformer(encoder=encoder, **BRIEF)
    plain.fit(texts, labels, validation=(held, held_labels))
    assert validation_of(known) == validation_of(plain)
    assert sorted({level for level, _, _ in validation_of(model)}) == [1, 2]
    for wrong, message in [
        ((held, held_labels[:3]), "validation: 8 documents but labels for 3"),
        ((held, [*held_labels[1:], "x"]), "give a list of names"),
        ((held, np.ones((8, 2))), "validation labels: 2 columns"),
        ((held, [["unknown"]] * 8), "validation: no document has a label that the training data has"),
    ]:
        with pytest.raises(TreetopError, match=message):
            model.fit(texts, labels, validation=wrong)
