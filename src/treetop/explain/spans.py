"""Find the places of a text where an n-gram occurs."""

from __future__ import annotations

import re

MAX_SPANS = 50
MAX_CHARACTERS = 200_000  # only the beginning of a longer text is searched


def spans_of(text: str, name: str, unit: str = "word", lowercase: bool = True) -> list[tuple[int, int]]:
    """Start and end (in characters) of the occurrences of the n-gram `name` in `text`, at most fifty.

    Between the words of an n-gram there may be anything that is not part of a word.
    """
    if unit == "word":
        between = r"(?:(?!\w).)+"
        pattern = r"(?<!\w)" + between.join(map(re.escape, name.split(" "))) + r"(?!\w)"
    else:
        pattern = r"\s+".join(map(re.escape, name.split(" ")))
        if pattern.startswith(r"\s"):
            pattern = r"(?<!\s)" + pattern  # match a run of whitespace from its first character only
    flags = re.DOTALL | (re.IGNORECASE if lowercase else 0)
    matches = re.finditer(pattern, text[:MAX_CHARACTERS], flags)
    return [match.span() for match, _ in zip(matches, range(MAX_SPANS))]
