"""Text features keep to a limit of memory, which is planned before the work."""

import numpy as np
import pytest

import treetop
from treetop.errors import TreetopError
from treetop.features.words.tfidf import fit_tfidf
from treetop.features.words.wanted import TextMemory
from treetop.runtime.progress import Reporter
from treetop.settings.parts import Analyser
from treetop.training import text_features
from treetop.training.text_features import (
    FEWEST_PAIRS,
    LEAST_KEPT,
    distinct_words,
    fit_text_features,
    text_needs,
    text_plan,
)

TEXTS = ["a red apple and a green apple", "green grass", "a blue sky"] * 5
WORDS = (Analyser(ngrams=(1, 2), max_features=500_000),)


class Notes(Reporter):
    def __init__(self):
        self.notes = []

    def note(self, text):
        self.notes.append(text)


def plan(monkeypatch, room, threads=4, analysers=WORDS, texts=TEXTS):
    """The plan for so many bytes beyond what is in use, and the notes."""
    monkeypatch.setattr(text_features, "memory_in_use", lambda: 10**9)
    runtime = treetop.Runtime(threads=threads, memory=f"{10**9 + room}B", reporter=Notes())
    return *text_plan(analysers, texts, runtime), runtime.reporter.notes


def test_without_a_limit_the_defaults_apply():
    assert text_plan(WORDS, TEXTS, treetop.Runtime(threads=3)) == (3, TextMemory())


def test_as_much_is_kept_as_fits(monkeypatch):
    assert plan(monkeypatch, 1 << 40) == (4, TextMemory(), [])
    threads, memory, notes = plan(monkeypatch, 4 << 30)
    assert (threads, notes) == (4, [])
    assert LEAST_KEPT < memory.kept < TextMemory().kept
    assert FEWEST_PAIRS < memory.pairs < TextMemory().pairs
    needs = text_needs(WORDS, distinct_words(TEXTS))
    taken = needs.with_threads(4) + 2 * memory.kept + 4 * memory.pairs * text_features.OF_PAIR
    assert taken <= 4 << 30


def test_threads_are_left_out_until_the_work_fits(monkeypatch):
    needs = text_needs(WORDS, distinct_words(TEXTS))
    threads, memory, notes = plan(monkeypatch, needs.least(2))
    assert (threads, notes) == (2, ["2 of 4 threads are used to save memory"])
    assert memory == TextMemory(LEAST_KEPT, FEWEST_PAIRS)


def test_the_error_names_the_setting_that_fits(monkeypatch):
    needs = text_needs(WORDS, distinct_words(TEXTS))
    with pytest.raises(TreetopError, match=r"1,000.0 MB of it for the documents.*max_features=200000"):
        plan(monkeypatch, needs.least(1) - 1)
    with pytest.raises(TreetopError, match="raise memory, or train on fewer documents"):
        plan(monkeypatch, 10)


def test_distinct_words_are_estimated_from_a_sample(rng):
    def texts(vocabulary):
        words = (vocabulary ** rng.random((10_000, 50)) - 1).astype(int)  # Zipf's law
        return [" ".join(map(str, row)) for row in words]

    for vocabulary in (500, 200_000):
        given = texts(vocabulary)
        exact = len({word for text in given for word in text.split()})
        assert exact * 0.9 < distinct_words(given) < 2.5 * exact
    assert distinct_words(["", "?"]) == 0


def test_the_features_do_not_depend_on_the_limit(monkeypatch):
    monkeypatch.setattr(text_features, "LEAST_KEPT", 10)
    monkeypatch.setattr(text_features, "FEWEST_PAIRS", 3)
    _, expected = fit_tfidf(WORDS, TEXTS)
    for memory in (None, "20GB"):
        runtime = treetop.Runtime(threads=2, memory=memory)
        _, X = fit_text_features(WORDS, iter(TEXTS), runtime, TEXTS)
        np.testing.assert_array_equal(X.toarray(), expected.toarray())
