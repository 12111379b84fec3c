"""The small texts that settings are written in."""

from __future__ import annotations

import json
import re
from typing import Any

from treetop.errors import TreetopError

# A unit, the shortest and the longest n-gram, and how many characters are read: None is all.
Counted = tuple[str, tuple[int, int], int | None]

# What `ngrams` is by default, by the length of the texts. Trees that read differently err differently.
# In a title every letter counts: one tree sees words and pairs, one words and letters, one letters.
TITLES = "word:1-2|word:1+char:4|char:4"
# What a longer text is about stands at its beginning, in a title if it has one: words of that part are
# features of their own, which two of the trees see.
SHORT_TEXTS = "word:1-2|word:1+word:1@60|word:1-2+word:1-2@60"
LONG_TEXTS = "word:1-2+word:1-2@300|word:1-2|word:1-2@300+word:1-2@800"


def parse_views(spec: str) -> list[list[Counted]]:
    """``word:1-2+word:1@300|word:1-2`` as what each tree counts."""
    return [parse_ngrams(view) for view in (SHORT_TEXTS if spec == "auto" else spec).split("|")]


def parse_ngrams(spec: str) -> list[Counted]:
    """``word:1-2+char:3@400`` as [("word", (1, 2), None), ("char", (3, 3), 400)]."""
    found = []
    for part in spec.replace(" ", "").split("+"):
        match = re.fullmatch(r"(word|char):([1-9]\d?)(?:-([1-9]\d?))?(?:@([1-9]\d*))?", part)
        if not match or int(match[3] or match[2]) < int(match[2]):
            raise TreetopError(
                f"ngrams {spec!r} is not understood: write word:1-2, char:3, "
                "word:1@400 for the first 400 characters, several joined by +, "
                "and after | what further trees count"
            )
        first = int(match[4]) if match[4] else None
        found.append((match[1], (int(match[2]), int(match[3] or match[2])), first))
    return found


def parse_budget(text: str) -> tuple[list[float], str]:
    """``300/400/600 steps`` as ([300, 400, 600], "steps"); the unit may also be samples or epochs."""
    match = re.fullmatch(
        r"\s*(\d[\d_]*(?:\.\d+)?(?:/\d[\d_]*(?:\.\d+)?)*)\s*(step|sample|epoch)s?\s*", text
    )
    if not match:
        raise TreetopError(
            f"budget {text!r} is not understood: write 5 epochs, 2000 steps or 300/400/600 steps"
        )
    return [float(part.replace("_", "")) for part in match[1].split("/")], match[2] + "s"


def parse_assignment(text: str) -> tuple[str, Any]:
    """``alpha=0.5`` as ("alpha", 0.5); a value that is no JSON is a string."""
    name, equals, value = text.partition("=")
    if not equals:
        raise TreetopError(f"{text!r} is no setting: write name=value")
    try:
        return name.strip(), json.loads(value)
    except ValueError:
        return name.strip(), value
