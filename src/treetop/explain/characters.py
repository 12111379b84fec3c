"""Attribute the contributions of character n-grams to the words they come from."""

from __future__ import annotations

import re
from bisect import bisect_right

from treetop.explain.contributions import Contributions
from treetop.explain.spans import MAX_CHARACTERS, spans_of
from treetop.features.words.tokens import cut_at_word

# Character n-grams that are looked up in the text, largest contributions first. The others stay as
# they are: searching a long text for thousands of them would take seconds.
MAX_SEARCHED = 300

Span = tuple[int, int]


def attribute_to_words(text: str, grams: Contributions) -> Contributions:
    """Move the values of character n-grams to words of `text`; the sum of all values stays the same.

    The value of an n-gram is divided equally among its occurrences, and there among the words it
    overlaps, in proportion to the number of characters they share.
    """
    words = [match.span() for match in re.finditer(r"\w+", text[:MAX_CHARACTERS])]
    starts = [start for start, _ in words]
    attributed = Contributions()
    pieces = []
    for gram, value in grams.values.items():
        if gram.unit == "word":
            attributed.add(gram, value, grams.reach[gram])
        else:
            pieces.append(gram)
    pieces.sort(key=lambda gram: -abs(grams.values[gram]))
    for number, gram in enumerate(pieces):
        value, reach = grams.values[gram], grams.reach[gram]
        spans = []
        if number < MAX_SEARCHED:
            spans = spans_of(cut_at_word(text, reach), gram.name, gram.unit, gram.lowercase)
        if not spans:
            attributed.add(gram, value, reach)
        for span in spans:
            share, overlaps = value / len(spans), overlapping_words(span, words, starts)
            if not overlaps:
                attributed.add(gram, share, reach)
            common = sum(characters for _, characters in overlaps)
            for (start, end), characters in overlaps:
                name = text[start:end].lower() if gram.lowercase else text[start:end]
                word = gram._replace(name=name, unit="word")
                attributed.add(word, share * characters / common, reach)
    return attributed


def overlapping_words(span: Span, words: list[Span], word_starts: list[int]) -> list[tuple[Span, int]]:
    """The words that share characters with `span`, and the number of characters they share."""
    overlaps = []
    for word in words[max(0, bisect_right(word_starts, span[0]) - 1) :]:
        if word[0] >= span[1]:
            break
        characters = min(word[1], span[1]) - max(word[0], span[0])
        if characters > 0:
            overlaps.append((word, characters))
    return overlaps
