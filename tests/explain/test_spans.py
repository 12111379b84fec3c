"""Where n-grams occur in a text, and which words share the value of a character n-gram."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treetop.explain.characters import share_with_words
from treetop.explain.spans import MAX_SPANS, Gram, Occurrences, SearchedText

texts = st.text(st.sampled_from("abAB,! \t\né漢İß"), max_size=60)


def slow_spans(text, name, unit, lowercase):
    """The twin of `Occurrences.of`: a regular expression per n-gram."""
    pieces = [re.escape(piece) for piece in name.split(" ")]
    if unit == "word":
        pattern = r"(?<!\w)" + r"(?:(?!\w).)+".join(pieces) + r"(?!\w)"
    else:
        pattern = r"\s+".join(pieces)
        pattern = rf"(?<!\s)(?=({pattern}))" if pattern.startswith(r"\s") else rf"(?=({pattern}))"
    flags = re.DOTALL | (re.IGNORECASE if lowercase else 0)
    spans = [match.span(match.lastindex or 0) for match in re.finditer(pattern, text, flags)]
    return spans[:MAX_SPANS]


def spans_of(text, name, unit="word", lowercase=True):
    return Occurrences(text).of(Gram(name, unit, lowercase), len(text))


def test_spans_are_where_ngrams_occur():
    text = "Red apple; a RED-apple. Reddish"
    assert [text[a:b] for a, b in spans_of(text, "red")] == ["Red", "RED"]
    assert [text[a:b] for a, b in spans_of(text, "red apple")] == ["Red apple", "RED-apple"]
    assert spans_of(text, "red", lowercase=False) == []
    assert spans_of("a.b (c", "b (", "char") == [(2, 5)]
    assert spans_of("red \n\t apple", "d a", "char") == [(2, 8)]
    assert len(spans_of("x " * 1000, "x")) == 50
    assert spans_of("İx red", "red") == [(3, 6)]  # its lower case is longer
    assert spans_of("", "red") == spans_of("", "red", "char") == []
    assert spans_of("red", "red apple") == spans_of("re", "red", "char") == []


def test_only_what_was_counted_is_searched():
    occurrences = Occurrences("red apple red")
    assert occurrences.of(Gram("red"), 99) == [(0, 3), (10, 13)]
    assert occurrences.of(Gram("red"), 9) == [(0, 3)]
    assert occurrences.of(Gram("red", "char"), 9) == [(0, 3)]


@given(texts, st.lists(st.sampled_from(["a", "b", "ab", "é", "漢a"]), min_size=1, max_size=3))
def test_words_are_found_as_by_regular_expressions(text, words):
    for lowercase in (False, True):
        name = " ".join(words)
        found = spans_of(text, name, "word", lowercase)
        if len(words) == 1:
            assert found == slow_spans(text, name, "word", lowercase)
        else:  # the expression finds only those that do not overlap
            assert set(slow_spans(text, name, "word", lowercase)) <= set(found)


@given(texts, st.text(st.sampled_from("ab,! é漢"), min_size=1, max_size=4))
def test_character_ngrams_are_found_as_by_regular_expressions(text, name):
    name = re.sub(" +", " ", name)
    for lowercase in (False, True):
        assert spans_of(text, name, "char", lowercase) == slow_spans(text, name, "char", lowercase)


def slow_shares(text, name, value):
    """The twin of `share_with_words`, for one n-gram: words by name, and what is left."""
    spans, words = slow_spans(text, name, "char", False), {}
    kept = 0.0 if spans else value
    for start, end in spans:
        common = {}
        for match in re.finditer(r"\w+", text):
            characters = min(end, match.end()) - max(start, match.start())
            if characters > 0:
                common[match[0]] = common.get(match[0], 0) + characters
        for word, characters in common.items():
            share = value / len(spans) * characters / sum(common.values())
            words[word] = words.get(word, 0.0) + share
        kept += 0.0 if common else value / len(spans)
    return words, kept


@given(texts, st.lists(st.text(st.sampled_from("ab,! é"), min_size=3, max_size=3), max_size=4))
def test_values_are_shared_as_by_the_slow_twin(text, names):
    names = [name for name in names if "  " not in name]
    reading, values = SearchedText(text, lowercase=False), np.arange(1.0, 1 + len(names))
    places = reading.places_of(names, len(text))
    given_, kept = share_with_words(reading, places, 3, values)
    expected = dict.fromkeys(reading.names, 0.0)
    for name, value, left in zip(names, values, kept, strict=True):
        words, slow_left = slow_shares(text, name, value)
        assert left == pytest.approx(slow_left)
        for word, share in words.items():
            expected[word] += share
    assert dict(zip(reading.names, given_, strict=True)) == pytest.approx(expected)
    assert given_.sum() + kept.sum() == pytest.approx(values.sum())


def test_the_value_of_a_character_ngram_is_shared_by_the_words_it_overlaps():
    reading = SearchedText("Red apple !!", lowercase=True)
    places = reading.places_of(["d ap"], 99)
    given_, kept = share_with_words(reading, places, 4, np.array([0.9]))
    assert dict(zip(reading.names, given_, strict=True)) == pytest.approx({"red": 0.3, "apple": 0.6})
    assert kept.tolist() == [0.0]
    for name, length in (("!!", 2), ("zz", 2)):  # outside of words, not in the text
        places = reading.places_of([name], 99)
        given_, kept = share_with_words(reading, places, length, np.array([0.5]))
        assert not given_.any()
        assert kept.tolist() == [0.5]


def test_names_of_nothing_have_no_places():
    assert [places.tolist() for places in Occurrences("red").reading(True).places_of(["", ""], 3)] == [
        [],
        [],
    ]
