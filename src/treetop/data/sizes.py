"""Bounds of declared sizes: a few bytes of a file must not make gigabytes of memory."""

from __future__ import annotations

from pathlib import Path

from treetop.errors import TreetopError

LARGEST = 2**31 - 1  # column numbers are int32
# A matrix may have so many columns whatever it holds, and more of them per stored value.
ANY_FEATURES, ANY_LABELS, PER_VALUE = 1 << 24, 1 << 20, 100
HINTS = {
    "labels": "number the labels from 0, or give their names in another format, such as fastText",
    "features": "number the features from 0",
}


def check_columns(source: Path | str, columns: int, stored: int, what: str = "features") -> None:
    """Raise if a matrix of features or labels is far wider than its stored values explain."""
    some = ANY_LABELS if what == "labels" else ANY_FEATURES
    if columns > LARGEST or columns > max(some, PER_VALUE * stored):
        raise TreetopError(
            f"{source}: {columns:,} {what}, but only {stored:,} values: {HINTS.get(what, 'check it')}"
        )
