"""Parts of the settings that rooms below work with: what to count in texts, how rankers are made."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from treetop.settings.notation import Counted, parse_views

if TYPE_CHECKING:
    from treetop.settings.schema import LinearSettings


@dataclass(frozen=True)
class Analyser:
    """What to count in a text: n-grams of words or of characters."""

    unit: str = "word"  # word or char
    ngrams: tuple[int, int] = (1, 1)  # shortest and longest n-gram
    min_df: int | float = 1  # documents an n-gram must be in: a count, or a share if a float
    max_df: int | float = 1.0  # documents it may be in at most
    max_features: int | None = None  # keep only so many, the most frequent
    sublinear: bool = False  # 1 + ln(count) instead of the count
    stop_words: tuple[str, ...] = ()  # words removed before n-grams are formed
    lowercase: bool = True
    shortest: int = 1  # minimum number of characters of a word
    first: int | None = None  # look only at so many characters, those a text begins with


@dataclass(frozen=True)
class RankerSettings:
    """How the linear rankers are trained and searched."""

    loss: str = "squared-hinge"
    lambda_: float = 0.35
    alpha: float = 1.0
    cost_sensitive: bool = False
    bias: float | None = None
    passes: int = 20
    tolerance: float = 0.3
    prune_below: float = 0.1
    max_weights: int | None = None
    shortlist: str = "true"
    beam: int = 10
    score_transform: str = "auto"
    head_share: float = 0.0


def analysers_of(settings: LinearSettings) -> tuple[Analyser, ...]:
    """The analysers that `ngrams` names, all with the same limits."""
    return tuple(
        Analyser(
            unit=unit,
            ngrams=ngrams,
            min_df=settings.min_df,
            max_df=settings.max_df,
            max_features=settings.max_features,
            sublinear=settings.sublinear,
            stop_words=tuple(settings.stop_words),
            lowercase=settings.lowercase,
            shortest=settings.shortest_word if unit == "word" else 1,
            first=first,
        )
        for unit, ngrams, first in counted_by(settings)
    )


def views_by_tree(settings: LinearSettings) -> list[list[int]]:
    """The analysers, by number, that each tree sees; after the last the first is next."""
    counted = counted_by(settings)
    return [[counted.index(one) for one in view] for view in seen_by_trees(settings)]


def seen_by_trees(settings: LinearSettings) -> list[list[Counted]]:
    """What each tree counts; views beyond the number of trees have none to serve."""
    return parse_views(settings.ngrams)[: settings.trees]


def counted_by(settings: LinearSettings) -> list[Counted]:
    """Everything that some tree counts, once."""
    return list(dict.fromkeys(one for view in seen_by_trees(settings) for one in view))


def ranker_of(settings: LinearSettings) -> RankerSettings:
    """The part of the settings that concerns the rankers."""
    names = (one.name for one in fields(RankerSettings))
    return RankerSettings(
        **{name: getattr(settings, name) for name in names if hasattr(settings, name)}
    )
