"""Which characters are letters, and their lower case, for every code point.

The tables are read from a file of the package and not asked of Python, so that a model splits text
the same way on every version of Python.
`python -m treetop.features.words.unicode` writes the file anew.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from pathlib import Path

import numpy as np

from treetop.kernels.text import LETTER, MARK, SEPARATOR, SPACE

FILE = Path(__file__).with_name("unicode.npz")
CODE_POINTS = 0x110000
LOWER_LIMIT = 0x20000
# Lower case of these two depends on more than the character itself: Python's str.lower knows.
CONTEXT_SENSITIVE = ("\u03a3", "\u0130")


def character_kind(character: str) -> int:
    """Letter or digit, mark that continues a word, white space, or separator."""
    if character.isalnum():
        return LETTER
    if character.isspace():
        return SPACE
    # Variation selectors choose between the pictures of one character: no part of a word.
    if unicodedata.category(character) in ("Mn", "Mc") and "VARIATION SELECTOR" not in (
        unicodedata.name(character, "")
    ):
        return MARK
    return SEPARATOR


def tables_of_python() -> dict[str, np.ndarray]:
    """The tables of this Python, run-length coded."""
    kinds = np.array([character_kind(chr(point)) for point in range(CODE_POINTS)], np.uint8)
    starts = np.flatnonzero(np.diff(kinds, prepend=255)).astype(np.int32)
    upper = [p for p in range(LOWER_LIMIT) if len(chr(p).lower()) == 1 and chr(p).lower() != chr(p)]
    lower = [ord(chr(point).lower()) for point in upper]
    return {
        "starts": starts,
        "kinds": kinds[starts],
        "upper": np.array(upper, np.int32),
        "lower": np.array(lower, np.int32),
    }


@cache
def character_classes() -> np.ndarray:
    """uint8 for every code point: SEPARATOR, LETTER, MARK or SPACE."""
    with np.load(FILE) as tables:
        lengths = np.diff(tables["starts"], append=CODE_POINTS)
        return np.repeat(tables["kinds"], lengths)


@cache
def lower_case() -> np.ndarray:
    """int32 for the code points that can have a lower case: the lower case."""
    table = np.arange(LOWER_LIMIT, dtype=np.int32)
    with np.load(FILE) as tables:
        table[tables["upper"]] = tables["lower"]
    return table


def write_tables() -> None:
    """Write the tables of this Python to the file of the package."""
    np.savez_compressed(FILE, **tables_of_python())  # type: ignore[arg-type]


if __name__ == "__main__":
    write_tables()
