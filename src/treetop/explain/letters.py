"""What pieces of letters add, told by the words they stand in: nobody reads in fours."""

from __future__ import annotations

import re
from bisect import bisect_right

from treetop.explain.spans import CHARACTERS, spans_of
from treetop.features.words.tokens import cut_at_word

# An n-gram, whether it is of words or of letters ("char"), and whether case was folded.
Key = tuple[str, str, bool]
# Pieces that are looked for in the text, those that add most; the others stay as they are.
LOOKED_FOR = 300


def told_by_words(text: str, sums: dict[Key, float], reach: dict[Key, int]) -> dict[Key, float]:
    """The same values in all, those of letters at the words of `text` that the letters are of.

    A piece's value is shared by the places it stands at, and there by the words it touches, as many
    letters as it has of each. `reach`, how far each was looked for, learns of new words.
    """
    words = [match.span() for match in re.finditer(r"\w+", text[:CHARACTERS])]
    starts = [start for start, _ in words]
    told = {key: value for key, value in sums.items() if key[1] == "word"}
    pieces = sorted((key for key in sums if key[1] != "word"), key=lambda key: -abs(sums[key]))
    for number, key in enumerate(pieces):
        spans = spans_of(cut_at_word(text, reach[key]), *key) if number < LOOKED_FOR else []
        for span in spans:
            value, touched = sums[key] / len(spans), touching(span, words, starts)
            if not touched:
                told[key] = told.get(key, 0.0) + value
            common = sum(letters for _, letters in touched)
            for (start, end), letters in touched:
                name = text[start:end].lower() if key[2] else text[start:end]
                word = (name, "word", key[2])
                told[word] = told.get(word, 0.0) + value * letters / common
                reach[word] = max(reach.get(word, 0), reach[key])
        if not spans:
            told[key] = sums[key]
    return told


def touching(
    span: tuple[int, int], words: list[tuple[int, int]], starts: list[int]
) -> list[tuple[tuple[int, int], int]]:
    """Words that have letters in common with `span`, and how many."""
    found = []
    for word in words[max(0, bisect_right(starts, span[0]) - 1) :]:
        if word[0] >= span[1]:
            break
        letters = min(word[1], span[1]) - max(word[0], span[0])
        if letters > 0:
            found.append((word, letters))
    return found
