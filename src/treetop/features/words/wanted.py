"""Which n-grams may become features, and how often they must occur at least."""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np

from treetop.errors import TreetopError
from treetop.runtime.memory import memory_in_use, size_text
from treetop.settings.parts import Analyser

# Bytes per position whose n-grams are counted, and per distinct token and thread that counts.
OF_PAIR, OF_TOKEN_AND_THREAD = 32, 52
FEWEST_PAIRS = 1 << 20
# Of the free memory; the rest is for what is not counted.
SHARE_OF_ROOM = 3 / 4


class TextMemory(NamedTuple):
    """How much of a corpus is in memory while its features are learned."""

    kept: int = 1 << 30  # bytes of token ids, and of rows of features; the rest is on disk
    pairs: int = 1 << 25  # positions whose n-grams a thread counts at a time
    limit: int | None = None  # bytes of this process

    def pairs_with(self, tokens: int, threads: int) -> int:
        """How many positions a thread counts at a time, now that the distinct tokens are known.

        Raise if the limit leaves no room.
        """
        if self.limit is None:
            return self.pairs
        taken = memory_in_use() + self.kept + threads * OF_TOKEN_AND_THREAD * tokens
        room = int(SHARE_OF_ROOM * (self.limit - taken)) // (threads * OF_PAIR)
        if room < FEWEST_PAIRS:
            least = taken + threads * OF_PAIR * FEWEST_PAIRS
            raise TreetopError(
                f"n-grams of {tokens:,} distinct words take about {size_text(least)}, but memory is "
                f"{size_text(self.limit)}: set ngrams=word:1, or raise memory"
            )
        return min(self.pairs, room)


class Wanted(NamedTuple):
    """Limits of the n-grams that become features."""

    shortest: int  # tokens
    longest: int
    least: int  # documents
    most: int
    features: int | None  # number of features

    @classmethod
    def by(cls, analyser: Analyser, documents: int) -> Wanted:
        """The limits of an analyzer for so many documents."""
        least = max(1, int(np.ceil(as_count(analyser.min_df, documents))))
        most = int(np.floor(as_count(analyser.max_df, documents)))
        return cls(*analyser.ngrams, least, most, analyser.max_features)


def as_count(limit: int | float, documents: int) -> float:
    """A limit of the document frequency as a count; a float is a share of all documents."""
    return limit if isinstance(limit, int) else limit * documents


class Fewest:
    """The occurrences that an n-gram must have to become a feature, as far as they are known yet.

    Only so many n-grams become features, the most frequent ones. As soon as so many are known, one that
    occurs less often than all of them is none, nor is it part of one: it can be forgotten.
    """

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self._most, self._lock = np.empty(0, np.int64), threading.Lock()

    @property
    def occurrences(self) -> int:
        """The least number of occurrences."""
        features = self.wanted.features
        return int(self._most[0]) if features is not None and self._most.size == features else 0

    def count(self, length: int, documents: np.ndarray, occurrences: np.ndarray) -> None:
        """Take n-grams of so many tokens into account, by the documents they are in (int64)."""
        features = self.wanted.features
        if features is None or length < self.wanted.shortest:
            return
        fitting = (documents >= self.wanted.least) & (documents <= self.wanted.most)
        with self._lock:
            most = np.concatenate([self._most, occurrences[fitting]])
            if most.size >= features:
                most = np.partition(most, most.size - features)[-features:]  # the least comes first
            self._most = most
