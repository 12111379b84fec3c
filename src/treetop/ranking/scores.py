"""Score transforms: from the raw scores along a path to the score of a label.

Beam search adds logarithms; transforms that multiply are exponentiated at the end.
"""

from __future__ import annotations

import re
from functools import lru_cache
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


class PathScore(NamedTuple):
    """The score transforms of levels 1, 2, …, in the form that the kernel expects."""

    kinds: np.ndarray  # int64, by level
    powers: np.ndarray
    combines: np.ndarray
    exponentiate: bool  # of the last level

    def final(self, scores: np.ndarray) -> np.ndarray:
        """Convert the sums of the search to final scores."""
        return np.exp(scores) if self.exponentiate else scores


@lru_cache(maxsize=1024)
def path_score(names: tuple[str, ...]) -> PathScore:
    """Look up the score transforms of levels 1, 2, … by name.

    A level of ``identity`` forgets the levels above, so those below it must be raw too. The others all
    multiply, or all add logarithms.
    """
    levels = [score_kind(name) for name in names]
    summed = [kind for kind in levels if kind.combine == transforms.ADD]
    if levels[: len(summed)] != summed or len({kind.exponentiate for kind in summed}) > 1:
        raise TreetopError(
            f"score_transform {'/'.join(names)!r}: only the last levels may be identity, and the "
            "others must all be logarithms (log-), or none"
        )
    kinds, powers, combines = (np.array([kind[part] for kind in levels], np.int64) for part in range(3))
    return PathScore(kinds, powers, combines, levels[-1].exponentiate)


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
