"""Documents held out within training: those that settings compete on and confidence is calibrated on.

A document is held out or not by its hash, so equal documents are always on one side, the order of the
documents does not matter, and several models of the same documents hold out the same ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from treetop.model.seen import Watched

# Share of the documents that is held out, and the most documents: more would cost time without gain.
SHARE, MOST = 0.2, 4000
# Constants of splitmix64, which spreads hashes and seeds evenly.
STEP, FIRST, SECOND = (
    np.uint64(number) for number in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)


def held_out(
    hashes: Iterable[int], seed: int = 0, share: float = SHARE, most: int = MOST
) -> np.ndarray:
    """Choose the documents to hold out.

    Parameters
    ----------
    hashes : iterable of int
        The hash of each document: `treetop.model.seen.hashes_of`.
    seed : int
        Another seed gives another choice.
    share, most : float, int
        Share of the documents, and the maximum number. A smaller fold is part of a larger one.

    Returns
    -------
    int64 array
        Row numbers, ascending. Equal documents count together, so there may be a few less than asked
        for; at least one document is left to train on.
    """
    keys = mixed(np.fromiter(hashes, np.int64), seed)
    count = min(round(share * keys.size), most, keys.size - 1)
    distinct, sizes = np.unique(keys, return_counts=True)
    groups = np.searchsorted(np.cumsum(sizes), count, "right")
    if not groups:
        return np.zeros(0, np.int64)
    return np.flatnonzero(keys <= distinct[groups - 1])


class KeptTexts:
    """Texts of which those that may be held out are kept when all have been read once.

    `watched` has hashed each text when it is given, here by `texts`.
    """

    def __init__(self, watched: Watched, texts: Iterable[Any], seed: int = 0) -> None:
        self.watched, self.texts, self.seed = watched, texts, seed
        self._kept: dict[int, str] = {}  # by row

    def __iter__(self) -> Iterator[Any]:
        for row, text in enumerate(self.texts):
            yield text
            self._kept[row] = text
            if len(self._kept) >= 4 * MOST:
                self._drop()

    def _drop(self) -> None:
        """Keep those that `held_out` may choose: at least as many as it may choose at most."""
        rows = np.fromiter(self._kept, np.int64)
        keys = mixed(np.array([self.watched.hashes[row] for row in rows], np.int64), self.seed)
        limit = np.partition(keys, MOST)[MOST]
        self._kept = {row: self._kept[row] for row in rows[keys <= limit].tolist()}

    def of(self, rows: np.ndarray) -> list[str]:
        """The texts of held-out documents."""
        return [self._kept[row] for row in rows.tolist()]


def mixed(hashes: np.ndarray, seed: int) -> np.ndarray:
    """Mix each hash with the seed: uint64, equal for equal hashes alone."""
    with np.errstate(over="ignore"):
        mix = hashes.astype(np.uint64) + STEP * np.uint64(seed + 1)
        mix = (mix ^ (mix >> np.uint64(30))) * FIRST
        mix = (mix ^ (mix >> np.uint64(27))) * SECOND
    return np.asarray(mix ^ (mix >> np.uint64(31)))
