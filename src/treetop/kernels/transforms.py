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
    if kind == IDENTITY:
        return score
    if kind == SIGMOID:
        if score > 0:
            return -np.log1p(np.exp(-score))
        return score - np.log1p(np.exp(score))
    gap = max(np.float32(1.0) - score, np.float32(0.0))
    worth = gap
    for _ in range(power - 1):
        worth *= gap
    if kind == ORDERED:
        worth += ORDER / max(score, np.float32(1.0))
    return -worth


@helper
def transform_cubes(scores, start, count, above, ordered):
    """scores[start:] = above + the transform of `count` scores with power 3: one vector at a time."""
    for at in range(start, start + count):
        score = scores[at]
        gap = max(np.float32(1.0) - score, np.float32(0.0))
        worth = gap * gap * gap
        if ordered:
            worth += ORDER / max(score, np.float32(1.0))
        scores[at] = above - worth


@helper
def transform_all(scores, start, count, above, kind, power):
    """scores[start:] = above + the transform of `count` scores."""
    if power == 3 and kind == ORDERED:
        transform_cubes(scores, start, count, above, True)
    elif power == 3 and kind == HINGE:
        transform_cubes(scores, start, count, above, False)
    else:
        for at in range(start, start + count):
            scores[at] = above + np.float32(transform(scores[at], kind, power))
