"""What a ranker's raw score is worth, and how scores combine from the root to a label.

The search adds logarithms; the multiplying kinds are turned back into their product at the end.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from treetop.errors import TreetopError
from treetop.kernels import search
from treetop.settings.schema import SCORE_TRANSFORMS


class ScoreKind(NamedTuple):
    """A score transform as the kernel takes it."""

    kind: int
    power: int
    combine: int
    exponentiate: bool

    def final(self, scores: np.ndarray) -> np.ndarray:
        """From what the search adds up to what the user sees."""
        return np.exp(scores) if self.exponentiate else scores


def score_kind(name: str) -> ScoreKind:
    """Transform by name.

    ``lp-hinge`` is exp(-max(1 - v, 0)^p) and ``sigmoid`` 1 / (1 + exp(-v)), both multiplied along the
    path; ``log-`` before either adds their logarithms; ``identity`` is the label's own raw score.
    ``lp-ordered`` is lp-hinge less a thousandth at most: raw scores above 1, which are all worth the
    same to a hinge, keep their order.
    """
    log = name.startswith("log-")
    base = name.removeprefix("log-")
    if match := re.fullmatch(r"l([1-9])-(hinge|ordered)", base):
        kind = search.HINGE if match[2] == "hinge" else search.ORDERED
        return ScoreKind(kind, int(match[1]), search.ADD, not log)
    if base == "sigmoid":
        return ScoreKind(search.SIGMOID, 1, search.ADD, not log)
    if name == "identity":
        return ScoreKind(search.IDENTITY, 1, search.LAST, False)
    raise TreetopError(f"score {name!r} is not known: choose one of {', '.join(SCORE_TRANSFORMS)}")
