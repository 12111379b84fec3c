"""Find the places of a text where n-grams occur."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from treetop.features.words.tokens import cut_at_word

MAX_SPANS = 50
MAX_CHARACTERS = 200_000  # only the beginning of a longer text is searched

HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)

Span = tuple[int, int]


class Gram(NamedTuple):
    """An n-gram as an analyzer counts it."""

    name: str
    unit: str = "word"  # or "char"
    lowercase: bool = True  # whether case is ignored


class Occurrences:
    """Where n-grams occur in one text; each is searched once, however many labels ask for it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.readings: dict[bool, SearchedText] = {}
        self.found: dict[tuple[Gram, int], list[Span]] = {}
        self.ends: dict[int, int] = {}

    def of(self, gram: Gram, reach: int) -> list[Span]:
        """Start and end of the first fifty occurrences in the `reach` characters that were counted."""
        key = gram, self.end_of(reach)
        if key not in self.found:
            reading = self.reading(gram.lowercase)
            if gram.unit == "word":
                self.found[key] = reading.words_of(gram.name, key[1])
            else:
                (places,), at = reading.places_of([gram.name], key[1]), reading.positions
                starts, stops = at[places].tolist(), at[places + len(gram.name)].tolist()
                self.found[key] = list(zip(starts, stops, strict=True))
        return self.found[key]

    def end_of(self, reach: int) -> int:
        """Where an analyzer that counts `reach` characters stops."""
        if reach not in self.ends:
            self.ends[reach] = min(len(cut_at_word(self.text, reach)), MAX_CHARACTERS)
        return self.ends[reach]

    def reading(self, lowercase: bool) -> SearchedText:
        """The text as analyzers read it that ignore case, or do not."""
        if lowercase not in self.readings:
            self.readings[lowercase] = SearchedText(self.text[:MAX_CHARACTERS], lowercase)
        return self.readings[lowercase]


class SearchedText:
    """A text prepared for the search of n-grams.

    `squeezed` is the text with runs of whitespace as single spaces, `positions` (int64) where each of
    its characters is in the text, and at last the length of the text.
    """

    def __init__(self, text: str, lowercase: bool) -> None:
        self.text = lower_in_place(text) if lowercase else text
        kept = np.ones(len(text) + 1, bool)
        for match in re.finditer(r"\s{2,}", self.text):
            kept[match.start() + 1 : match.end()] = False
        self.squeezed, self.positions = re.sub(r"\s+", " ", self.text), np.flatnonzero(kept)
        self.orders: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    @cached_property
    def words(self) -> list[Span]:
        """Start and end of each word."""
        return [match.span() for match in re.finditer(r"\w+", self.text)]

    @cached_property
    def sequence(self) -> list[str]:
        """The words as strings."""
        return re.findall(r"\w+", self.text)

    @cached_property
    def numbers(self) -> dict[str, list[int]]:
        """The different words, and their numbers in the sequence."""
        numbers: dict[str, list[int]] = {}
        for number, name in enumerate(self.sequence):
            numbers.setdefault(name, []).append(number)
        return numbers

    @cached_property
    def names(self) -> list[str]:
        """The different words."""
        return list(self.numbers)

    @cached_property
    def name_at(self) -> np.ndarray:
        """Which of `names` each character of `squeezed` belongs to (int64), -1 between two words."""
        number_of = {name: number for number, name in enumerate(self.names)}
        spans = np.array(self.words, np.int64).reshape(-1, 2)
        starts, sizes = np.searchsorted(self.positions, spans[:, 0]), spans[:, 1] - spans[:, 0]
        before = np.cumsum(sizes) - sizes
        characters = np.arange(sizes.sum()) + np.repeat(starts - before, sizes)
        name_at = np.full(len(self.squeezed), -1, np.int64)
        name_at[characters] = np.repeat([number_of[name] for name in self.sequence], sizes)
        return name_at

    def words_of(self, name: str, end: int) -> list[Span]:
        """Where the words of an n-gram follow each other; there may be anything but words between."""
        wanted = name.split(" ")
        spans: list[Span] = []
        for first in self.numbers.get(wanted[0], ()):
            last = first + len(wanted) - 1
            if last >= len(self.words) or self.words[last][1] > end or len(spans) == MAX_SPANS:
                break
            if self.sequence[first : last + 1] == wanted:
                spans.append((self.words[first][0], self.words[last][1]))
        return spans

    def places_of(self, names: Sequence[str], end: int) -> list[np.ndarray]:
        """Where n-grams of characters, all of one length, start in `squeezed` (int64 each).

        At most fifty places each, in which a space is any whitespace.
        """
        if not names or not names[0]:
            return [np.empty(0, np.int64) for _ in names]  # a damaged vocabulary has names of nothing
        length = len(names[0])
        hashes, order = self.order_of(length)
        wanted = hash_grams("".join(names), length)[::length]
        firsts = np.searchsorted(hashes, wanted, "left").tolist()
        lasts = np.searchsorted(hashes, wanted, "right").tolist()
        found = []
        for name, first, last in zip(names, firsts, lasts, strict=True):
            places = order[first : min(last, first + MAX_SPANS)]
            if places.size and self.squeezed[places[0] : places[0] + length] != name:
                places = places[:0]  # another n-gram has the same hash
            found.append(places[self.positions[places + length] <= end])
        return found

    def order_of(self, length: int) -> tuple[np.ndarray, np.ndarray]:
        """The hashes of all n-grams of so many characters in ascending order, and where they are."""
        if length not in self.orders:
            hashes = hash_grams(self.squeezed, length)
            order = np.argsort(hashes, kind="stable")
            self.orders[length] = hashes[order], order
        return self.orders[length]


def hash_grams(text: str, length: int) -> np.ndarray:
    """A hash (uint64) of the n-gram of so many characters at each place of a text."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.uint64)
    hashes = np.zeros(max(0, codes.size - length + 1), np.uint64)
    for at in range(length):
        hashes *= HASH_FACTOR
        hashes += codes[at : at + hashes.size] + np.uint64(1)
    return hashes


def lower_in_place(text: str) -> str:
    """The text in lower case, except for the few characters that would become longer."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(low if len(low := letter.lower()) == 1 else letter for letter in text)
