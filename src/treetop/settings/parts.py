"""Settings of single components: analyzers of text and linear rankers."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from treetop.settings.notation import at_level, values_by_level


@dataclass(frozen=True)
class Analyser:
    """Which n-grams of words or characters are extracted from a text as features."""

    unit: str = "word"  # word or char
    ngrams: tuple[int, int] = (1, 1)  # minimum and maximum length
    min_df: int | float = 1  # minimum document frequency: a count, or a fraction if a float
    max_df: int | float = 1.0  # maximum document frequency
    max_features: int | None = None  # the most frequent n-grams are kept; None: all
    sublinear: bool = False  # 1 + ln(tf) instead of tf
    stop_words: tuple[str, ...] = ()  # removed before n-grams are formed
    lowercase: bool = True
    shortest: int = 1  # minimum length of a word in characters
    first: int | None = None  # number of characters to read from the beginning; None: all


@dataclass(frozen=True)
class RankerSettings:
    """How linear rankers are trained and searched; see the settings of the same names.

    Strings may list a value per level; `at` has those of one level.
    """

    loss: str = "squared-hinge"
    lambda_: float | str = 0.35
    alpha: float | str = 1.0
    cost_sensitive: bool = False
    relevance_norm: str = "l1"
    bias: float | str | None = None
    passes: int = 20
    tolerance: float = 0.3
    prune_below: float = 0.1
    max_weights: int | None = None
    shortlist: str = "true"
    beam: int | str = 10
    score_transform: str = "auto"
    head_share: float = 0.0
    weight_type: str = "float32"

    def at(self, level: int, depth: int) -> RankerSettings:
        """Return the settings of a level from 1 to `depth`, with a single value for each."""
        numbers: dict[str, Any] = {
            name: at_level(name, getattr(self, name), level, depth)
            for name in ("lambda_", "alpha", "bias")
        }
        numbers = {name: None if value is None else float(value) for name, value in numbers.items()}
        above = max(1, depth - 1)  # a beam is kept on the levels above the labels
        return replace(
            self,
            **numbers,
            shortlist=at_level("shortlist", self.shortlist, level, depth),
            beam=int(at_level("beam", self.beam, min(level, above), above)),
            score_transform=at_level("score_transform", self.score_transform, level, depth),
        )

    def of_first_level(self) -> RankerSettings:
        """Return the settings of the first level of a tree of any depth that they may be for."""
        first: dict[str, Any] = {
            name: values_by_level(name, value)[0]
            for name in ("lambda_", "alpha", "bias", "shortlist", "beam", "score_transform")
            if isinstance(value := getattr(self, name), str)
        }
        return replace(self, **first).at(1, 1)

    def by_level(self, depth: int) -> list[RankerSettings]:
        """Return the settings of levels 1 to `depth`."""
        return [self.at(level, depth) for level in range(1, depth + 1)]


RANKER = tuple(field.name for field in fields(RankerSettings))
# The settings of the final rankers that the rankers between the levels of fine-tuning share.
MATCHER = tuple(
    name for name in RANKER if name not in ("beam", "shortlist", "head_share", "weight_type")
)
