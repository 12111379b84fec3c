"""The competition picks what the data needs, respects what is given, and is the same on any threads."""

import json
import random

import numpy as np
import pytest
import scipy.sparse as sp

import treetop
from treetop.errors import TreetopError
from treetop.features.words.tfidf import fit_tfidf
from treetop.model.card import card
from treetop.runtime import Runtime
from treetop.runtime.progress import Reporter
from treetop.settings import auto, portfolio
from treetop.settings.schema import LinearSettings
from treetop.training import competition, sampling
from treetop.training.competition import Judge, decided
from treetop.training.sampling import (
    SampledFrom,
    TrialSample,
    documents_with,
    sample_of,
    sampled_labels,
    some_of,
)
from treetop.training.trials import FeatureBank, trial, unit_columns

RULES = LinearSettings(competition=False)


class Lines(Reporter):
    """Keeps what is shown of each stage."""

    def __init__(self):
        self.shown = []

    def figures(self, text):
        self.shown.append(text)


def without_spaces(documents=700, labels=12, seed=0):
    """Texts of a script without spaces: each label is a word of two letters anywhere in the text."""
    letters = random.Random(seed)
    alphabet = "日月火水木金土山川田人口車門雨本"
    words = [letters.choice(alphabet) + letters.choice(alphabet) for _ in range(labels)]
    texts, names = [], []
    for _ in range(documents):
        own = letters.sample(range(labels), 2)
        parts = [words[label] for label in own]
        parts += ["".join(letters.choices(alphabet, k=2)) for _ in range(6)]
        letters.shuffle(parts)
        texts.append("".join(parts))
        names.append([f"label {label}" for label in own])
    return texts, names


def with_words(documents=700, labels=12, seed=0):
    """Texts in which each label is a word of its own, among many others."""
    letters = random.Random(seed)
    words = ["".join(letters.choices("abcdefgh", k=5)) for _ in range(400)]
    texts, names = [], []
    for _ in range(documents):
        own = letters.sample(range(labels), 2)
        parts = [words[label] for label in own] + letters.choices(words[labels:], k=10)
        letters.shuffle(parts)
        texts.append(" ".join(parts))
        names.append([f"label {label}" for label in own])
    return texts, names


def matrix(names):
    labels = sorted({name for own in names for name in own})
    rows = [[float(label in own) for label in labels] for own in names]
    return sp.csr_matrix(np.array(rows, np.float32))


@pytest.fixture(scope="module")
def unspaced():
    texts, names = without_spaces()
    return SampledFrom(texts, matrix(names), None)


@pytest.fixture(scope="module")
def chosen(unspaced):
    return decided(LinearSettings(), unspaced, Runtime(threads=1))


def test_a_script_without_spaces_gets_characters(chosen):
    settings, line = chosen
    assert all(portfolio.uses_characters(view) for view in settings.ngrams.split("|"))
    assert line.startswith(portfolio.spoken(settings.ngrams.split("|")) + ": nDCG@5 0.")
    assert "words alone 0." in line


def test_the_choice_does_not_depend_on_the_number_of_threads(unspaced, chosen):
    assert decided(LinearSettings(), unspaced, Runtime(threads=3)) == chosen


def test_ties_go_to_the_rules():
    texts, names = with_words()
    settings, line = decided(LinearSettings(), SampledFrom(texts, matrix(names), None), Runtime())
    assert settings.ngrams == auto.with_ngrams(RULES, texts)[0].ngrams
    assert line.endswith("nothing else is significantly better")


@pytest.mark.parametrize("given", [{"ngrams": "word:1"}, {"competition": False}])
def test_what_is_given_by_hand_is_respected(unspaced, given):
    settings, line = decided(LinearSettings(**given), unspaced, Runtime())
    assert line == ""
    assert settings.ngrams == given.get("ngrams", auto.TITLES)


def test_few_documents_follow_the_rules(unspaced):
    texts, Y = unspaced.texts[:499], unspaced.Y[:499]
    settings, line = decided(LinearSettings(), SampledFrom(texts, Y, None), Runtime())
    assert (settings.ngrams, line) == (auto.TITLES, "")


def test_validation_documents_are_the_held_out_part(unspaced):
    texts, Y, _ = unspaced[:3]
    documents = SampledFrom(texts[:500], Y[:500], None, texts[500:], Y[500:])
    sample = sample_of(documents, auto.with_costs(RULES, Y, None))
    assert set(sample.held_texts) <= set(texts[500:])
    assert set(sample.texts) <= set(texts[:500])
    assert sample.held_labels.shape == (len(sample.held_texts), sample.labels.size)


def test_a_competition_takes_no_more_than_so_much_work_however_large_the_data(monkeypatch):
    texts, names = with_words(16_000, 300)
    Y = matrix(names)
    settings = auto.with_costs(RULES, Y, None)
    lengths = np.fromiter(map(len, texts), np.int64)

    def used():
        rows, labels = sampling.affordable(Y, lengths, settings)
        blocks = -(-labels.size // sampling.BLOCK)
        return (sampling.READ_ALL + sampling.TRY_ALL * blocks) * lengths[rows].sum()

    work = used()
    monkeypatch.setattr(sampling, "MOST_WORK", work / 2)
    assert work / 20 < used() <= work / 2


def test_of_many_validation_documents_some_are_used():
    rows = np.arange(5000)
    chosen = some_of(rows, 10_000, seed=0)
    assert chosen.size == 3000
    assert np.array_equal(chosen, np.unique(chosen))
    assert np.array_equal(chosen, some_of(rows, 10_000, seed=0))
    assert some_of(rows, 100, seed=0).size == 800
    assert np.array_equal(some_of(rows[:70], 100, seed=0), rows[:70])


def test_validation_documents_of_a_fit_are_the_held_out_part(unspaced, monkeypatch):
    held = []

    def seen(*given):
        held.extend(sample_of(*given).held_texts)
        return sample_of(*given)

    monkeypatch.setattr(competition, "sample_of", seen)
    texts, names = without_spaces()
    model = treetop.XRLinear(trees=1, calibration=False)
    model.fit(texts[:550], names[:550], validation=(texts[550:], names[550:]))
    assert held
    assert set(held) <= set(texts[550:])


@pytest.mark.parametrize(
    ("X", "validation", "message"),
    [
        (["a b"] * 4, (["a"], [["z"]]), "no document has a label that the training data has"),
        (["a b"] * 4, (["a"],), r"give \(texts, labels\)"),
        (np.eye(4), (["a"], [["x"]]), "chooses the features of texts on it, but features were given"),
    ],
)
def test_mistakes_with_validation_documents(X, validation, message):
    with pytest.raises(TreetopError, match=f"validation: .*{message}"):
        treetop.XRLinear().fit(X, [["x"], ["y"]] * 2, validation=validation)


@pytest.fixture
def contest_with(monkeypatch):
    """A contest in which words and characters have given values; what is higher is surely better."""

    def made(words, characters):
        values = {"word:1": words, "word:1-2": words, "char:4": characters, "char:1-3": characters}
        own = competition.Contest
        monkeypatch.setattr(own, "value", lambda _, views: max(values[view] for view in views))
        monkeypatch.setattr(own, "surely_better", lambda self, a, b: self.value(a) > self.value(b))
        return own(None, None, None, 1)

    return made


def test_characters_compete_unless_they_are_far_behind(contest_with):
    assert not any(map(portfolio.uses_characters, contest_with(0.6, 0.5).candidates(auto.TITLES)))
    listed = contest_with(0.6, 0.59).candidates(auto.TITLES)
    assert {*portfolio.CHARACTERS, *portfolio.MIXED, "word:1"} < set(listed)
    assert len(listed) == len(set(listed))


def test_words_compete_unless_they_are_far_behind(contest_with):
    assert contest_with(0.5, 0.6).needs_characters(["word:1"])
    assert not contest_with(0.59, 0.6).needs_characters(["word:1"])
    assert not contest_with(0.5, 0.6).needs_characters(["char:4"])


@pytest.mark.parametrize(
    ("lead", "multiple", "worth"),
    [
        (0.009, 0.5, False),
        (0.011, 0.5, True),
        (0.011, 1.9, True),
        (0.019, 3.0, False),
        (0.021, 3.0, True),
    ],
)
def test_a_choice_must_gain_what_it_costs(contest_with, monkeypatch, lead, multiple, worth):
    contest = contest_with(0.5, 0.5 + lead)
    monkeypatch.setattr(type(contest), "work", lambda _, views: 10 * multiple ** ("char:4" in views))
    assert contest.is_worth_it(["char:4"], ["word:1"]) == worth


def test_characters_alone_are_chosen_on_a_larger_sample(unspaced, monkeypatch):
    times = []

    def seen(documents, settings, share=1.0):
        times.append(share)
        return sample_of(documents, settings, share)

    monkeypatch.setattr(competition, "sample_of", seen)
    settings, line = decided(LinearSettings(), unspaced, Runtime(threads=1))
    assert times == [1.0, competition.LARGER]
    assert set(settings.ngrams.split("|")) <= set(portfolio.CHARACTERS)
    assert line


@pytest.mark.parametrize("optimize", ["P@1", "nDCG@5", "PSP@5", "macro-F1"])
def test_each_metric_prefers_the_better_scores(optimize):
    truth = sp.csr_matrix(np.eye(30, dtype=np.float32))
    sample = TrialSample([], truth, None, np.arange(30), [], truth)
    judge = Judge(sample, competition.METRIC[optimize], np.full(30, 3), 90, 0)
    right = np.eye(30, dtype=np.float32)
    wrong = np.roll(right, 1, axis=1) + 0.5 * np.roll(right, 2, axis=1)
    assert judge.value(right) > judge.value(wrong)
    assert judge.surely_better(right, wrong)
    assert not judge.surely_better(wrong, right)
    assert not judge.surely_better(right, right)


def test_sampled_labels_come_from_all_frequencies():
    counts = np.array([0, 9, 1, 8, 2, 7, 3, 6, 4, 5])
    labels = sampled_labels(counts, 3, seed=0)
    # By frequency: 1 3 5 | 7 9 8 | 6 4 2, one of each three; label 0 has no document.
    assert [np.isin(labels, third).sum() for third in ([1, 3, 5], [7, 9, 8], [6, 4, 2])] == [1, 1, 1]


def test_documents_of_the_sampled_labels_are_complete():
    Y = sp.csr_matrix(np.array([[1, 0, 0], [0, 1, 1], [0, 0, 1], [0, 0, 0]], np.float32))
    assert documents_with(Y, np.array([0, 2])).tolist() == [0, 1, 2]
    assert documents_with(Y, np.array([0])).tolist() == [0]


def test_unit_columns_are_the_columns_scaled():
    X = sp.random(20, 15, density=0.4, format="csr", random_state=0, dtype=np.float32)
    chosen = np.arange(15) % 3 > 0
    expected = X.toarray()[:, chosen]
    norms = np.linalg.norm(expected, axis=1, keepdims=True)
    expected = expected / np.where(norms, norms, 1)
    assert np.allclose(unit_columns(X, chosen).toarray(), expected, atol=1e-6)


def test_the_bank_gives_the_features_that_a_fit_would_give(unspaced):
    texts = unspaced.texts[:100]
    sample = TrialSample(texts, unspaced.Y[:100], None, np.arange(12), texts[:20], unspaced.Y[:20])
    settings = LinearSettings(ngrams="char:1-2+char:1-2@6")
    X, held = FeatureBank(sample, settings, 1).of(settings.ngrams)
    _, expected = fit_tfidf(settings.analysers(), texts, 1)
    for given, count in ((X, 100), (held, 20)):
        products = (given @ given.T).toarray()  # columns are in another order
        assert np.allclose(products, (expected @ expected.T).toarray()[:count, :count], atol=1e-5)


def test_a_trial_ranks_the_label_of_a_document_first(unspaced):
    texts, Y = unspaced.texts, unspaced.Y
    sample = TrialSample(texts, Y, None, np.arange(12), texts[:50], Y[:50])
    settings = auto.with_costs(LinearSettings(ngrams="char:2"), Y, None)
    X, held = FeatureBank(sample, settings, 1).of("char:2")
    scores = trial(X, held, sample, settings, 1)
    assert scores.shape == (50, 12)
    assert scores.dtype == np.float32
    assert Y.toarray()[np.arange(50), scores.argmax(axis=1)].mean() > 0.95


def test_the_model_remembers_why(unspaced, chosen, tmp_path):
    lines = Lines()
    texts, names = without_spaces()
    model = treetop.XRLinear().fit(iter(texts), names, report=lines)
    settings, line = chosen
    assert (model.settings_.ngrams, lines.shown) == (settings.ngrams, [line])
    assert model.model_.asked["ngrams"] == "auto"
    model.save(tmp_path / "model")
    loaded = treetop.load(tmp_path / "model")
    assert loaded.model_.competition == line
    facts = json.loads((tmp_path / "model" / "config.json").read_text("utf-8"))
    assert f"Chosen by a competition on a part of the training data: {line}." in card(facts)


def test_a_run_resumes_after_the_competition(encoder, tmp_path, monkeypatch):
    texts, names = without_spaces()
    quick = {"encoder": encoder, "fine_tune": False, "max_length": 8}
    run = tmp_path / "run"
    first = treetop.XRTransformer(**quick).fit(texts, names, run=run)
    assert (run / "competition.safetensors").exists()

    def again(*_):
        raise AssertionError("the competition was repeated")

    monkeypatch.setattr("treetop.training.deciding.decided", again)
    second = treetop.XRTransformer(**quick, keep_documents=True).fit(texts, names, run=run, resume=True)
    assert second.settings_.ngrams == first.settings_.ngrams
    assert second.model_.competition == first.model_.competition != ""
