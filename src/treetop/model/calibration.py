"""Calibrated confidence: from raw scores to the probability that a label is right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from types import MethodType
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

import numpy as np
import scipy.sparse as sp

from treetop.errors import TreetopError
from treetop.features.hybrid import raw_csr
from treetop.kernels import calibrating
from treetop.runtime.arrays import Arrays
from treetop.runtime.checking import Column, check_arrays

NOT_CALIBRATED = (
    "this model is not calibrated, so its scores are not probabilities: run treetop calibrate MODEL "
    "DATA, or call calibrate(texts, labels)"
)
P = ParamSpec("P")
R = TypeVar("R")
KNOTS = ("score_knots", "length_knots", "count_knots", "margin_knots", "logits")
TABLES = ("by_length", "by_count", "by_rank", "by_margin")
COLUMNS = {
    "score_knots": Column("float64", ("scores",)),
    "length_knots": Column("float64", ("lengths",)),
    "count_knots": Column("float64", ("counts",)),
    "margin_knots": Column("float64", ("margins",)),
    "by_length": Column("float64", ("scores", "lengths")),
    "by_count": Column("float64", ("scores", "counts")),
    "by_rank": Column("float64", ("scores", "ranks")),
    "by_margin": Column("float64", ("scores", "margins")),
    "logits": Column("float64", ("steps",)),
    "probabilities": Column("float64", ("steps",)),
}


@dataclass(frozen=True)
class Calibration:
    """A small model of score, rank, margin, text length and label frequency, as tables.

    A logit is the sum of one value of each table, by linear interpolation between knots: in the rows of
    a table, along the score. None falls as the score rises. `probabilities` belong to the `logits`.
    """

    score_knots: np.ndarray  # float64, ascending, as all knots
    length_knots: np.ndarray  # of log(1 + features of the document)
    count_knots: np.ndarray  # of log(1 + training documents of the label)
    margin_knots: np.ndarray  # of the steps between knots of the document's best score and this one
    by_length: np.ndarray  # float64, scores x lengths
    by_count: np.ndarray  # scores x counts
    by_rank: np.ndarray  # scores x ranks; the last column is for all ranks beyond
    by_margin: np.ndarray  # scores x margins
    logits: np.ndarray  # float64, ascending
    probabilities: np.ndarray  # float64, from 0 to 1, not falling

    @property
    def arrays(self) -> Arrays:
        """The arrays by name, for a file."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: Arrays, widths: tuple[int, int], labels: int) -> Calibration:
        """Tables of a file, which may be from a stranger."""
        checked = check_arrays(arrays, COLUMNS, {})
        for name in KNOTS:
            if not checked[name].size or (np.diff(checked[name]) <= 0).any():
                raise TreetopError(f"{name} does not ascend")
        for name in (*TABLES, "probabilities"):
            if not checked[name].size or (np.diff(checked[name], axis=0) < 0).any():
                raise TreetopError(f"{name} falls along the score")
        if checked["probabilities"][0] < 0 or checked["probabilities"][-1] > 1:
            raise TreetopError("probabilities are not between 0 and 1")
        return cls(**checked)

    def of(self, scores: sp.csr_matrix, lengths: np.ndarray, label_counts: np.ndarray) -> sp.csr_matrix:
        """The probability of each score, in the same order, which does not rise along a row.

        Parameters
        ----------
        scores : float32 CSR of shape (N, L)
            Scores, best first in each row.
        lengths : int64 array of shape (N,)
            Number of features of each document.
        label_counts : int64 array of shape (L,)
            Number of training documents per label.

        Returns
        -------
        float32 CSR of shape (N, L)
            Probabilities, at the same places.
        """
        out = np.empty(scores.data.size, np.float32)
        indptr = scores.indptr.astype(np.int64, copy=False)
        labels = scores.indices.astype(np.int64, copy=False)
        values = scores.data.astype(np.float32, copy=False)
        tables = self.arrays.values()
        calibrating.probabilities_of(indptr, labels, values, lengths, label_counts, *tables, out)
        return raw_csr(out, scores.indices, indptr, scores.shape)


class NotCalibratedError(TreetopError, AttributeError):
    """Probabilities were asked of a model that is not calibrated."""

    def __init__(self) -> None:
        super().__init__(NOT_CALIBRATED)


class when_calibrated(Generic[P, R]):  # noqa: N801, a decorator
    """A method that a fitted estimator has only if it is calibrated, as scikit-learn expects."""

    def __init__(self, method: Callable[Concatenate[Any, P], R]) -> None:
        self.method = method

    @overload
    def __get__(self, instance: None, owner: type) -> Callable[Concatenate[Any, P], R]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Callable[P, R]: ...
    def __get__(self, instance: Any, owner: type) -> Callable[..., R]:
        if instance is None:
            return self.method
        if instance.__sklearn_is_fitted__() and not instance.model_.calibrated:
            raise NotCalibratedError
        method: Callable[..., R] = MethodType(self.method, instance)
        return method
