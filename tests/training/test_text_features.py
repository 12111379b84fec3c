"""Text features keep to a limit of memory, which is planned before the work."""

from dataclasses import replace

import numpy as np
import pytest

import treetop
from treetop.errors import TreetopError
from treetop.features.words import wanted
from treetop.features.words.tfidf import fit_tfidf
from treetop.features.words.wanted import OF_PAIR, OF_TOKEN_AND_THREAD, TextMemory
from treetop.runtime.progress import Reporter
from treetop.settings.parts import Analyser
from treetop.training import text_features
from treetop.training.text_features import (
    LEAST_KEPT,
    fit_text_features,
    sampled_words,
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
    assert plan(monkeypatch, 1 << 40) == (4, TextMemory(limit=(1 << 40) + 10**9), [])
    threads, memory, notes = plan(monkeypatch, 4 << 30)
    assert (threads, notes) == (4, [])
    assert LEAST_KEPT < memory.kept < TextMemory().kept
    needs = text_needs(WORDS, sampled_words(TEXTS))
    assert needs.with_threads(4) + 2 * memory.kept < 4 << 30


def test_threads_are_left_out_until_the_work_fits(monkeypatch):
    needs = text_needs(WORDS, sampled_words(TEXTS))
    threads, memory, notes = plan(monkeypatch, needs.least(2))
    assert (threads, notes) == (2, ["2 of 4 threads are used to save memory"])
    assert memory.kept == LEAST_KEPT


def test_the_error_names_the_setting_that_fits(monkeypatch):
    monkeypatch.setattr(text_features, "sampled_words", lambda texts: 300_000)
    few = text_needs([replace(WORDS[0], max_features=200_000)], 300_000)
    with pytest.raises(TreetopError, match=r"1,000.0 MB of it for the documents.*max_features=200000"):
        plan(monkeypatch, few.least(1))
    with pytest.raises(TreetopError, match="raise memory, or train on fewer documents"):
        plan(monkeypatch, 10)


def test_distinct_words_are_counted_in_a_sample(monkeypatch):
    assert sampled_words(TEXTS) == 8
    monkeypatch.setattr(text_features, "SAMPLED_TEXTS", 1)
    assert sampled_words(TEXTS) == 5
    assert sampled_words(["", "?"]) == 0


def test_ngrams_are_planned_again_when_the_words_are_known(monkeypatch):
    monkeypatch.setattr(wanted, "memory_in_use", lambda: 10**9)
    assert TextMemory().pairs_with(10**9, 2) == TextMemory().pairs
    memory = TextMemory(kept=10**6, limit=2 * 10**9)
    pairs = memory.pairs_with(10**6, 2)
    taken = 10**9 + memory.kept + 2 * (OF_TOKEN_AND_THREAD * 10**6 + OF_PAIR * pairs)
    assert 0.6 * memory.limit < taken < memory.limit
    with pytest.raises(TreetopError, match=r"of 10,000,000 distinct words take about .* ngrams=word:1"):
        memory.pairs_with(10**7, 2)


def test_the_features_do_not_depend_on_the_limit(monkeypatch):
    monkeypatch.setattr(text_features, "LEAST_KEPT", 10)
    _, expected = fit_tfidf(WORDS, TEXTS)
    for memory in (None, "20GB"):
        runtime = treetop.Runtime(threads=2, memory=memory)
        _, X = fit_text_features(WORDS, iter(TEXTS), runtime, TEXTS)
        np.testing.assert_array_equal(X.toarray(), expected.toarray())
