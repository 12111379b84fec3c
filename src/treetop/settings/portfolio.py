"""The feature settings that compete for the default: pure functions of notation."""

from __future__ import annotations

from collections.abc import Sequence

from treetop.settings.auto import LONG_TEXTS, SHORT_TEXTS, TITLES
from treetop.settings.notation import Ngrams, parse_ngrams

# Single words, pairs, the beginning of the texts, and characters, which scripts without spaces and
# languages of many word forms need.
WORDS = ("word:1-2", "word:1")
BEGINNINGS = {
    TITLES: ("word:1-2+word:1-2@60",),
    SHORT_TEXTS: ("word:1-2+word:1-2@60",),
    LONG_TEXTS: ("word:1-2+word:1-2@300",),
}
CHARACTERS = ("char:1-3", "char:4")
MIXED = ("word:1+char:4", "word:1-2+char:1-3")


def word_candidates(rule: str) -> tuple[str, ...]:
    """The features without characters that compete where the rule chooses `rule`, and all its parts."""
    return tuple(dict.fromkeys((*rule.split("|"), *WORDS, *BEGINNINGS[rule])))


def uses_characters(ngrams: str) -> bool:
    """Whether character n-grams are among the features."""
    return any(item.unit == "char" for item in parse_ngrams(ngrams))


def spoken(views: Sequence[str]) -> str:
    """Describe the features of several trees: ``word:1+char:3-5`` as ``words and characters 3–5``."""
    return "; ".join(" and ".join(map(spoken_item, parse_ngrams(view))) for view in views)


def spoken_item(item: Ngrams) -> str:
    """Describe one item of the notation."""
    shortest, longest = item.lengths
    lengths = str(longest) if shortest == longest else f"{shortest}–{longest}"
    if item.unit == "char":
        name = f"characters {lengths}"
    else:
        name = {"1": "words", "1–2": "words and pairs"}.get(lengths, f"words {lengths}")
    return name if item.first is None else f"{name} of the first {item.first} characters"
