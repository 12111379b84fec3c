"""Score transforms: from the raw scores along a path to the score of a label.

Beam search adds logarithms; transforms that multiply are exponentiated at the end.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from treetop.errors import TreetopError
from treetop.kernels import transforms
from treetop.settings.schema import SCORE_TRANSFORMS


class ScoreKind(NamedTuple):
    """A score transform in the form that the kernel expects."""

    kind: int
    power: int
    combine: int
    exponentiate: bool

    def final(self, scores: np.ndarray) -> np.ndarray:
        """Convert the sums of the search to final scores."""
        return np.exp(scores) if self.exponentiate else scores


def score_kind(name: str) -> ScoreKind:
    """Look up a score transform by name.

    ``lp-hinge`` is exp(-max(1 - v, 0)^p) and ``sigmoid`` is 1 / (1 + exp(-v)), both multiplied along
    the path; with the prefix ``log-`` their logarithms are added. ``identity`` is the raw score of the
    label alone. ``lp-ordered`` is lp-hinge reduced by at most a thousandth, so that raw scores above 1,
    which lp-hinge maps to the same value, keep their order.
    """
    log = name.startswith("log-")
    base = name.removeprefix("log-")
    if match := re.fullmatch(r"l([1-9])-(hinge|ordered)", base):
        kind = transforms.HINGE if match[2] == "hinge" else transforms.ORDERED
        return ScoreKind(kind, int(match[1]), transforms.ADD, not log)
    if base == "sigmoid":
        return ScoreKind(transforms.SIGMOID, 1, transforms.ADD, not log)
    if name == "identity":
        return ScoreKind(transforms.IDENTITY, 1, transforms.LAST, False)
    raise TreetopError(f"unknown score transform {name!r}: choose one of {', '.join(SCORE_TRANSFORMS)}")
