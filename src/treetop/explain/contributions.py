"""The contribution of every n-gram of a text to a raw score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from treetop.explain.explanation import Word
from treetop.explain.spans import spans_of
from treetop.features.words.tokens import cut_at_word


class Gram(NamedTuple):
    """An n-gram as an analyzer counts it."""

    name: str
    unit: str = "word"  # or "char"
    lowercase: bool = True  # whether case is ignored


@dataclass
class Contributions:
    """Value of each n-gram, and how many characters of the text it was counted in."""

    values: dict[Gram, float] = field(default_factory=dict)
    reach: dict[Gram, int] = field(default_factory=dict)

    def add(self, gram: Gram, value: float, reach: int) -> None:
        """Add to the value of an n-gram."""
        self.values[gram] = self.values.get(gram, 0.0) + value
        self.reach[gram] = max(self.reach.get(gram, 0), reach)

    @property
    def total(self) -> float:
        """The sum of all values."""
        return sum(self.values.values())

    def largest(self, text: str | None, count: int) -> list[Word]:
        """The `count` words with the largest absolute values, and where they occur in `text`."""
        grams: dict[str, list[Gram]] = {}
        for gram in self.values:
            grams.setdefault(gram.name, []).append(gram)
        values = {name: sum(self.values[gram] for gram in same) for name, same in grams.items()}
        names = sorted(values, key=lambda name: -abs(values[name]))[:count]
        return [Word(name, values[name], self.spans(text, grams[name])) for name in names]

    def spans(self, text: str | None, grams: Sequence[Gram]) -> list[tuple[int, int]]:
        """Where any of these n-grams occurs in `text`."""
        if text is None:
            return []
        return sorted(
            {span for gram in grams for span in spans_of(cut_at_word(text, self.reach[gram]), *gram)}
        )
