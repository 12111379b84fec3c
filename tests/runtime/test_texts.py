"""Texts on disk."""

import pytest

from treetop.features.words.tfidf import fit_tfidf
from treetop.model.seen import hashes_of
from treetop.runtime import texts as module
from treetop.runtime.texts import StoredTexts, TextCollector, kept_texts
from treetop.settings.parts import Analyser

TEXTS = ["", "red apple", "grün", "日本", "lone \ud800 surrogate", "x" * 50, ""]


@pytest.fixture(params=[1, 20, 4 << 20])
def stored(request, monkeypatch):
    """Texts that are read one by one, a few at a time, and all at once."""
    monkeypatch.setattr(module, "PIECE", request.param)
    return StoredTexts(iter(TEXTS))


def test_stored_texts_are_the_texts(stored):
    assert list(stored) == TEXTS
    assert len(stored) == len(TEXTS)
    assert [stored[place] for place in range(-7, 7)] == TEXTS + TEXTS
    assert stored[1:6:2] == TEXTS[1:6:2]
    with pytest.raises(IndexError):
        stored[7]


def test_no_texts():
    assert list(StoredTexts([])) == []


def test_few_texts_stay_in_memory():
    assert kept_texts(iter(TEXTS)) == TEXTS
    assert type(kept_texts(iter(TEXTS))) is list


def test_many_texts_are_stored():
    kept = kept_texts(iter(TEXTS), most=20)
    assert type(kept) is StoredTexts
    assert list(kept) == TEXTS


def test_collected_texts_are_counted_before_and_after_they_are_stored():
    collector = TextCollector(most=20)
    counts = []
    for text in TEXTS:
        collector.append(text)
        counts.append(len(collector))
    assert counts == [1, 2, 3, 4, 5, 6, 7]
    assert type(collector.collected()) is StoredTexts
    assert list(collector.collected()) == TEXTS


def test_stored_texts_are_features_and_hashes_as_others_are(stored):
    texts = [*TEXTS[:4], *TEXTS[5:]]
    same = StoredTexts(texts)
    expected, given = (fit_tfidf([Analyser()], own)[1] for own in (texts, same))
    assert (expected != given).nnz == 0
    assert list(hashes_of(same)) == list(hashes_of(texts))
