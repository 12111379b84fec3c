"""Attribute the contributions of character n-grams to the words they come from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from treetop.explain.spans import SearchedText


def share_with_words(
    reading: SearchedText, grams: Sequence[np.ndarray], length: int, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Divide the values (float64) of character n-grams among the words of a text.

    `grams` holds where each n-gram occurs in `reading.squeezed`, all of them `length` characters long.
    The value of an n-gram is divided equally among its occurrences, and there among the words it
    overlaps, in proportion to the number of characters they share. Returns what each of
    `reading.names` gets, and what stays with each n-gram because it overlaps no word.
    """
    counts = np.array([places.size for places in grams], np.int64)
    shares = np.repeat(values / np.maximum(counts, 1), counts)
    places = np.concatenate([np.empty(0, np.int64), *grams])
    names = reading.name_at[places[:, None] + np.arange(length)]
    inside = names >= 0
    common = inside.sum(axis=1)
    per_character = np.repeat(shares / np.maximum(common, 1), common)
    given = np.bincount(names[inside], weights=per_character, minlength=len(reading.names))
    kept = np.where(counts > 0, 0.0, values)
    owners = np.repeat(np.arange(counts.size), counts)[common == 0]
    kept += np.bincount(owners, weights=shares[common == 0], minlength=counts.size)
    return given, kept
