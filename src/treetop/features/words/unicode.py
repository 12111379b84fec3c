"""The class and the lower case of every Unicode code point.

The tables come from a file of the package instead of Python's `unicodedata`, so that a model splits
text in the same way on every version of Python. `python -m treetop.features.words.unicode` regenerates
the file.
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
# The lower case of these two depends on their context or is longer: str.lower handles them.
CONTEXT_SENSITIVE = ("\u03a3", "\u0130")


def character_kind(character: str) -> int:
    """LETTER (or digit), MARK (continues a word), SPACE or SEPARATOR."""
    if character.isalnum():
        return LETTER
    if character.isspace():
        return SPACE
    # Variation selectors choose between glyphs of a character and are not part of a word.
    if unicodedata.category(character) in ("Mn", "Mc") and "VARIATION SELECTOR" not in (
        unicodedata.name(character, "")
    ):
        return MARK
    return SEPARATOR


def tables_of_python() -> dict[str, np.ndarray]:
    """The tables of this version of Python, run-length encoded."""
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
    """The class of every code point, uint8: SEPARATOR, LETTER, MARK or SPACE."""
    with np.load(FILE) as tables:
        lengths = np.diff(tables["starts"], append=CODE_POINTS)
        return np.repeat(tables["kinds"], lengths)


@cache
def lower_case() -> np.ndarray:
    """The lower case of every code point below LOWER_LIMIT, int32."""
    table = np.arange(LOWER_LIMIT, dtype=np.int32)
    with np.load(FILE) as tables:
        table[tables["upper"]] = tables["lower"]
    return table


def write_tables() -> None:
    """Write the tables of this version of Python to the file of the package."""
    np.savez_compressed(FILE, **tables_of_python())  # type: ignore[arg-type]


if __name__ == "__main__":
    write_tables()
