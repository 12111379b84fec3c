"""Fitting of calibrations and thresholds to made-up scores whose probabilities are known."""

import numpy as np
import pytest
import scipy.sparse as sp

import treetop
from treetop.errors import TreetopError
from treetop.model.seen import Watched, hashes_of
from treetop.training.calibrating import OutOfFold, expit, fit_calibration, isotonic_steps
from treetop.training.choosing import fit_thresholds
from treetop.training.folds import MOST, KeptTexts, held_out
from treetop.training.out_of_fold import first_words

LABELS, PER_DOCUMENT = 40, 8


def made_up(rng, documents):
    """Scores and lengths of documents; the score of a short document promises too much."""
    labels = np.argsort(rng.random((documents, LABELS)), axis=1)[:, :PER_DOCUMENT]
    scores = -np.sort(-rng.random((documents, PER_DOCUMENT)), axis=1).astype(np.float32)
    lengths = rng.choice([3, 50], documents)
    chances = scores**2 * np.where(lengths == 3, 0.5, 1.0)[:, None]
    true = rng.random(scores.shape) < chances
    pointers = np.arange(0, labels.size + 1, PER_DOCUMENT)
    shape = (documents, LABELS)
    found = sp.csr_matrix((scores.ravel(), labels.ravel(), pointers), shape=shape)
    truth = sp.csr_matrix((true.ravel().astype(float), labels.ravel(), pointers), shape=shape)
    truth.eliminate_zeros()
    return OutOfFold(found, lengths, truth), chances.ravel()


def test_the_probabilities_are_those_the_labels_were_drawn_with(rng):
    evidence, _ = made_up(rng, 3000)
    counts = np.full(LABELS, 10)
    calibration = fit_calibration([evidence], counts)
    other, chances = made_up(rng, 1000)
    found = calibration.of(other.scores, other.lengths, counts).data
    assert np.abs(found - chances).mean() < 0.02
    short = np.repeat(other.lengths == 3, PER_DOCUMENT)
    for rows in (short, ~short):
        assert abs(found[rows].mean() - chances[rows].mean()) < 0.015


def test_labels_that_are_almost_always_right_are_told_apart(rng):
    """The first steps of equal variance held all labels above 0.95, which were said to be equal."""
    logits = np.concatenate([rng.normal(4, 1.5, 20_000), rng.normal(-4, 1.5, 60_000)])
    hit = (rng.random(logits.size) < expit(logits)).astype(float)
    found = np.interp(logits, *isotonic_steps(logits, hit))
    sure = logits > 4
    assert found[sure].mean() == pytest.approx(hit[sure].mean(), abs=0.001)


def test_few_scores_get_a_logistic_curve(rng):
    evidence, _ = made_up(rng, 60)
    calibration = fit_calibration([evidence], np.full(LABELS, 10))
    assert calibration.by_rank.shape == (2, 1)
    logits, probabilities = calibration.logits, calibration.probabilities
    np.testing.assert_allclose(probabilities, 1 / (1 + np.exp(-logits)))


def test_too_few_documents_are_not_calibrated_on(rng):
    evidence, _ = made_up(rng, 20)
    assert fit_calibration([evidence], np.full(LABELS, 10)) is None
    nothing = OutOfFold(*made_up(rng, 50)[0][:2], sp.csr_matrix((50, LABELS)))
    assert fit_calibration([nothing], np.full(LABELS, 10)) is None


def test_promised_precision_is_kept(rng):
    evidence, chances = made_up(rng, 4000)
    probabilities = sp.csr_matrix(
        (chances, evidence.scores.indices, evidence.scores.indptr), shape=evidence.scores.shape
    )
    thresholds = fit_thresholds(probabilities, evidence.truth)
    hits = evidence.hits()
    for promised in (0.7, 0.8, 0.9):
        threshold, precision, share = thresholds.for_precision(promised)
        chosen = chances >= threshold
        assert promised <= precision < promised + 0.01
        assert hits[chosen].mean() == pytest.approx(promised, abs=0.02)
        assert hits[chosen].sum() / evidence.truth.nnz == pytest.approx(share, abs=0.02)
    assert thresholds.for_precision(0.999999).share == 0.0

    def micro(threshold):
        chosen = chances >= threshold
        return 2 * hits[chosen].sum() / (chosen.sum() + evidence.truth.nnz)

    best = max(map(micro, np.linspace(0.05, 0.95, 91)))
    assert micro(thresholds.named("micro-F1")) > best - 0.01
    with pytest.raises(TreetopError, match=r"precision is 1\.5: give a number between 0 and 1"):
        thresholds.for_precision(1.5)


@pytest.fixture(scope="module")
def corpus():
    rng = np.random.default_rng(0)
    words = ["red", "green", "blue", "apple", "grass", "sky", "sea", "sun"]
    rows = [sorted(rng.choice(8, 2, replace=False)) for _ in range(500)]
    texts = [
        " ".join(words[n] if rng.random() < 0.8 else "noise" for n in row) + f" {rng.integers(300)}"
        for row in rows
    ]
    return texts, [[words[n] for n in row] for row in rows]


@pytest.fixture(scope="module")
def trained(corpus):
    texts, labels = corpus
    return treetop.XRLinear().fit(texts[:400], labels[:400])


def test_training_calibrates_and_predicts_the_same_scores_as_without(corpus, trained):
    texts, labels = corpus
    plain = treetop.XRLinear(calibration=False).fit(texts[:400], labels[:400])
    assert trained.model_.calibrated
    assert not plain.model_.calibrated
    scores = trained.predict_scores(texts[400:], 5)
    assert (scores != plain.predict_scores(texts[400:], 5)).nnz == 0
    probabilities = trained.predict_proba(texts[400:], 5)
    np.testing.assert_array_equal(probabilities.indices, scores.indices)
    first = trained.predict_proba(texts[400:], 3)
    np.testing.assert_array_equal(first[0].data, probabilities[0].data[:3])
    with pytest.raises(TreetopError, match=r"not calibrated.*run treetop calibrate MODEL DATA"):
        plain.predict_proba(texts[400:])
    with pytest.raises(TreetopError, match="not calibrated"):
        plain.predict(texts[400:], precision=0.9)


def test_a_model_that_was_trained_without_calibration_can_be_calibrated(corpus, tmp_path):
    texts, labels = corpus
    plain = treetop.XRLinear(calibration=False).fit(texts[:400], labels[:400])
    plain.save(tmp_path / "plain")
    for model in (plain, treetop.load(str(tmp_path / "plain"))):
        assert model.calibrate(texts[400:], labels[400:]).model_.calibrated


def test_no_setting_hides_a_method():
    for estimator in (treetop.XRLinear, treetop.XRTransformer):
        for name in estimator().get_params():
            assert not hasattr(estimator, name), name


def test_labels_are_chosen_by_precision_and_by_named_thresholds(corpus, trained):
    texts, labels = corpus
    for options in ({"precision": 0.8}, {"threshold": "micro-F1"}):
        chosen = trained.predict(texts[400:], **options)
        pairs = [(n in true, p) for row, true in zip(chosen, labels[400:]) for n, p in row]
        assert np.mean([right for right, _ in pairs]) > 0.75
        assert max(map(len, chosen)) <= 2
    per_label = trained.predict(texts[400:], threshold="macro-F1-per-label")
    assert np.mean([len(row) for row in per_label]) == pytest.approx(2, abs=0.6)
    with pytest.raises(TreetopError, match="threshold is 'F2': give a number, or one of 'micro-F1'"):
        trained.predict(texts[400:], threshold="F2")
    with pytest.raises(TreetopError, match="alternatives"):
        trained.predict(texts[400:], threshold="micro-F1", precision=0.9)


def test_a_calibrated_model_survives_its_folder(corpus, trained, tmp_path):
    texts, _ = corpus
    trained.save(tmp_path / "model")
    again = treetop.load(tmp_path / "model")
    assert (again.predict_proba(texts, 5) != trained.predict_proba(texts, 5)).nnz == 0
    assert again.predict(texts[:9], precision=0.9) == trained.predict(texts[:9], precision=0.9)


def test_ensembles_are_calibrated_after_combination(corpus, trained, tmp_path):
    texts, labels = corpus
    ensemble = treetop.Ensemble([trained, trained], weights=[1, 2])
    with pytest.raises(TreetopError, match="not calibrated"):
        ensemble.predict_proba(texts)
    with pytest.raises(TreetopError, match="3 documents are too few to calibrate on"):
        ensemble.calibrate(texts[:3], labels[:3])
    calibrated = ensemble.calibrate(texts[400:], labels[400:])
    assert not ensemble.model_.calibrated
    calibrated.save(tmp_path / "both")
    found = treetop.load(tmp_path / "both").predict(texts[:1], k=2, probability=True)[0]
    assert found == calibrated.predict(texts[:1], k=2, probability=True)[0]
    assert 0 < found[1][1] <= found[0][1] <= 1


def test_texts_that_may_be_held_out_are_kept():
    texts = [f"text {number}" for number in range(5 * MOST)]
    watched = Watched(texts)
    kept = KeptTexts(watched, watched)
    assert list(kept) == texts
    held = held_out(hashes_of(texts))
    assert held.size == MOST
    assert kept.of(held) == [texts[row] for row in held]
    assert len(kept._kept) < 4 * MOST


@pytest.mark.parametrize(
    ("text", "beginning"),
    [("one two three", "one two"), ("one", "one"), ("猫" * 40, "猫" * 6), ("", "")],
)
def test_first_words(text, beginning):
    assert first_words(text, 2) == beginning
