"""From which probability on a label is chosen: for a promised precision, or for the best F1."""

from __future__ import annotations

from dataclasses import dataclass, fields
from numbers import Real
from typing import NamedTuple

import numpy as np

from treetop.errors import TreetopError
from treetop.model.calibration import NotCalibratedError
from treetop.model.predictions import check_threshold
from treetop.runtime.arrays import Arrays
from treetop.runtime.checking import Column, check_arrays

# Labels per document, unless another number is asked for.
LABELS = 5
MICRO, MACRO, PER_LABEL = "micro-F1", "macro-F1", "macro-F1-per-label"
NAMES = (MICRO, MACRO, PER_LABEL)
# A threshold that no probability reaches.
UNREACHABLE = 2.0
COLUMNS = {
    "thresholds": Column("float64", ("steps",), least=0),
    "precisions": Column("float64", ("steps",), least=0),
    "shares": Column("float64", ("steps",), least=0),
    "of_f1": Column("float64", ("2",), least=0),
    "by_label": Column("float32", ("labels",), least=0),
    "maximum": Column("int64", ("1",), least=1),
}


class Promise(NamedTuple):
    """What a threshold gives: the precision of chosen labels, and the share of true labels found."""

    threshold: float
    precision: float
    share: float


@dataclass(frozen=True)
class Thresholds:
    """Thresholds of probabilities, and what they give, as measured on held-out documents."""

    thresholds: np.ndarray  # float64, ascending
    precisions: np.ndarray  # of the labels that reach each threshold, not falling
    shares: np.ndarray  # of all true labels that reach each threshold, not rising
    of_f1: np.ndarray  # float64, for the best micro-F1 and the best macro-F1
    by_label: np.ndarray  # float32, for the best F1 of each label, (L,)
    maximum: np.ndarray  # int64, (1,): more labels than almost all documents have

    @property
    def arrays(self) -> Arrays:
        """The arrays by name, for a file."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: Arrays, widths: tuple[int, int], labels: int) -> Thresholds:
        """Thresholds of a file, which may be from a stranger."""
        checked = check_arrays(arrays, COLUMNS, {"labels": labels})
        for name, sign in (("thresholds", 1), ("precisions", 1), ("shares", -1)):
            if not checked[name].size or (sign * np.diff(checked[name]) < 0).any():
                raise TreetopError(f"{name} {'falls' if sign > 0 else 'rises'}")
        return cls(**checked)

    @property
    def most_labels(self) -> int:
        """The maximum number of labels per document."""
        return int(self.maximum[0])

    def for_precision(self, precision: float) -> Promise:
        """The smallest threshold whose labels are right in this share of the cases."""
        is_number = isinstance(precision, Real) and not isinstance(precision, bool)
        if not is_number or not 0 < precision < 1:
            raise TreetopError(f"precision is {precision!r}: give a number between 0 and 1")
        at = int(np.searchsorted(self.precisions, precision))
        if at == self.precisions.size:
            return Promise(UNREACHABLE, precision, 0.0)
        return Promise(*(float(v[at]) for v in (self.thresholds, self.precisions, self.shares)))

    def named(self, name: str) -> float | np.ndarray:
        """The threshold of a name, or those of all labels."""
        if name not in NAMES:
            raise TreetopError(
                f"threshold is {name!r}: give a number, or one of {', '.join(map(repr, NAMES))}"
            )
        return self.by_label if name == PER_LABEL else float(self.of_f1[NAMES.index(name)])

    def describe(self) -> dict[str, float | int]:
        """What the model card and the service say."""
        described: dict[str, float | int] = {"maximum": self.most_labels}
        for name in (MICRO, MACRO):
            described[name] = float(self.of_f1[NAMES.index(name)])
        for precision in (0.9, 0.95):
            promise = self.for_precision(precision)
            described[f"threshold at precision {precision}"] = promise.threshold
            described[f"share at precision {precision}"] = promise.share
        return described


class AskedLabels(NamedTuple):
    """Which labels are predicted: the best `k`, those of them that reach the threshold."""

    k: int
    calibrated: bool  # whether the threshold is one of probabilities
    threshold: float | np.ndarray | None


def asked_labels(
    thresholds: Thresholds | None,
    k: int | None,
    threshold: float | str | None,
    precision: float | None,
    probability: bool,
) -> AskedLabels:
    """Which labels `predict` is asked for, of a model with these thresholds."""
    if precision is None and not isinstance(threshold, str):
        check_threshold(threshold)
        return AskedLabels(LABELS if k is None else k, probability, threshold)
    if thresholds is None:
        raise NotCalibratedError
    if precision is None:
        least = thresholds.named(str(threshold))
    elif threshold is None:
        least = thresholds.for_precision(precision).threshold
    else:
        raise TreetopError("threshold and precision are alternatives: give one of them")
    return AskedLabels(thresholds.most_labels if k is None else k, True, least)
