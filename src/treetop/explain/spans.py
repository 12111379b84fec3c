"""Where an n-gram stands in a text."""

from __future__ import annotations

import re

MOST = 50
CHARACTERS = 200_000  # of a text that are looked through


def spans_of(text: str, name: str, unit: str = "word", lowercase: bool = True) -> list[tuple[int, int]]:
    """Beginnings and ends (in characters) of the n-gram `name` in `text`, at most fifty.

    The words of an n-gram stand one after the other, whatever is between them that is no word.
    """
    if unit == "word":
        between = r"(?:(?!\w).)+"
        pattern = r"(?<!\w)" + between.join(map(re.escape, name.split(" "))) + r"(?!\w)"
    else:
        pattern = r"\s+".join(map(re.escape, name.split(" ")))
        if pattern.startswith(r"\s"):
            pattern = r"(?<!\s)" + pattern  # else every blank of a long run would be a beginning
    found = re.finditer(pattern, text[:CHARACTERS], re.DOTALL | (re.IGNORECASE if lowercase else 0))
    return [match.span() for match, _ in zip(found, range(MOST))]
