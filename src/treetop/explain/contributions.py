"""The contribution of every n-gram of a text to a raw score."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from treetop.explain.explanation import Word
from treetop.explain.spans import Gram, Occurrences, Span


class NamedGrams:
    """The n-grams of a text that have been named so far, numbered; and their names, numbered."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[Gram, int], int] = {}
        self.grams: list[tuple[Gram, int]] = []  # with the number of characters it is counted in
        self.names: dict[str, int] = {}
        self.name_of: list[int] = []

    def number(self, gram: Gram, reach: int) -> int:
        """The number of an n-gram that is counted in the first `reach` characters of the text."""
        key = gram, reach
        if key not in self.numbers:
            self.numbers[key] = len(self.grams)
            self.grams.append(key)
            self.name_of.append(self.names.setdefault(gram.name, len(self.names)))
        return self.numbers[key]


@dataclass(frozen=True)
class Contributions:
    """Values (float64) of numbered n-grams; a number may occur several times."""

    numbers: np.ndarray  # int64
    values: np.ndarray
    unnamed: float = 0.0  # the sum of the values that are too small to be listed

    @property
    def total(self) -> float:
        """The sum of all values."""
        return float(self.values.sum()) + self.unnamed

    def largest(self, named: NamedGrams, occurrences: Occurrences | None, count: int) -> list[Word]:
        """The `count` names with the largest absolute values, and where they occur."""
        if not self.numbers.size:
            return []
        texts, owners = list(named.names), np.array(named.name_of)[self.numbers]
        values = np.bincount(owners, weights=self.values, minlength=len(texts))
        counted = np.unique(owners)
        best = counted[np.argsort(-np.abs(values[counted]), kind="stable")[:count]].tolist()
        spans: dict[int, set[Span]] = {name: set() for name in best}
        if occurrences is not None:
            listed = np.isin(owners, best) & (self.values != 0)
            for number in np.unique(self.numbers[listed]).tolist():
                spans[named.name_of[number]].update(occurrences.of(*named.grams[number]))
        return [Word(texts[name], float(values[name]), sorted(spans[name])) for name in best]


def together(parts: Iterable[Contributions]) -> Contributions:
    """The sum of the contributions to several models."""
    parts = list(parts)
    return Contributions(
        np.concatenate([part.numbers for part in parts]),
        np.concatenate([part.values for part in parts]),
        sum(part.unnamed for part in parts),
    )
