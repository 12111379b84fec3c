"""What to count in texts of some length."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import chain, islice
from statistics import median
from typing import TypeVar

from treetop.settings.notation import LONG_TEXTS, SHORT_TEXTS, TITLES
from treetop.settings.schema import LinearSettings

Settings = TypeVar("Settings", bound=LinearSettings)
LOOKED_AT = 1000
# Characters of a text that is more than a title, and of one that is much more than its beginning.
SHORT, LONG = 150, 600


def with_ngrams(settings: Settings, texts: Iterable[str]) -> tuple[Settings, Iterable[str]]:
    """Settings in which ``ngrams="auto"`` is decided by the first texts, and the texts, all of them."""
    if settings.ngrams != "auto":
        return settings, texts
    stream = iter(texts)
    first = list(islice(stream, LOOKED_AT))
    length = median([len(text) for text in first if isinstance(text, str)] or [0])
    chosen = TITLES if length < SHORT else SHORT_TEXTS if length < LONG else LONG_TEXTS
    return replace(settings, ngrams=chosen), chain(first, stream) if stream is texts else texts
