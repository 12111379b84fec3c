"""What a raw score is worth in a search, by the kind of score transform."""

import numpy as np

from treetop.kernels import helper

HINGE, SIGMOID, IDENTITY, ORDERED = 0, 1, 2, 3
# The most that ranking the scores beyond the margin may change a score.
ORDER = np.float32(1e-3)
ADD, LAST = 0, 1


@helper
def transform(score, kind, power):
    """The logarithm of what a score is worth (for IDENTITY the score itself)."""
    if kind in (HINGE, ORDERED):
        gap = max(np.float32(1.0) - score, np.float32(0.0))
        worth = gap
        for _ in range(power - 1):
            worth *= gap
        if kind == ORDERED:
            worth += ORDER / max(score, np.float32(1.0))
        return -worth
    if kind == SIGMOID:
        if score > 0:
            return -np.log1p(np.exp(-score))
        return score - np.log1p(np.exp(score))
    return score
