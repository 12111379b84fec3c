"""A model that a report is about, and what is known of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from treetop.evaluation.context import Context
from treetop.evaluation.curves import Reliability, are_true, reliability
from treetop.evaluation.result import Evaluation
from treetop.model.ensemble import EnsembleModel
from treetop.model.model import Model
from treetop.model.predictor import Predictor
from treetop.model.training_record import TrainingRecord


@dataclass(frozen=True)
class Subject:
    """A model with its results.

    Parameters
    ----------
    name : str
        What to call it.
    model : Predictor
        The model.
    result : Evaluation, optional
        Its metrics, which know the predictions unless they were read from the model folder.
    probabilities : float32 CSR of shape (N, L), optional
        Calibrated probabilities of the same documents.
    record : TrainingRecord, optional
        Where time and memory went in training.
    size : int, optional
        Bytes of the model folder.
    """

    name: str
    model: Predictor
    result: Evaluation | None = None
    probabilities: sp.csr_matrix | None = None
    record: TrainingRecord | None = None
    size: int | None = None

    @property
    def is_evaluated(self) -> bool:
        """Whether the predictions are known, not only the metrics."""
        return self.result is not None and self.result.details is not None

    def models(self) -> list[Model]:
        """The model, or the members of an ensemble, and theirs."""
        return [model for model in members_of(self.model) if isinstance(model, Model)]

    def raw_reliability(self, k: int) -> Reliability:
        """How reliable the scores of the first k labels are, taken as probabilities."""
        context = self._context()
        listed = context.best[:, :k] >= 0
        rows = np.repeat(np.arange(listed.shape[0]), listed.sum(axis=1))
        scores = np.asarray(context.scores[rows, context.best[:, :k][listed]]).ravel()
        return reliability(np.clip(scores, 0, 1).astype(np.float64), context.hits[:, :k][listed])

    def calibrated_reliability(self, k: int) -> Reliability:
        """How reliable the calibrated probabilities of the first k labels are."""
        assert self.probabilities is not None
        counts = np.diff(self.probabilities.indptr)
        ranks = np.arange(self.probabilities.nnz) - np.repeat(self.probabilities.indptr[:-1], counts)
        true = are_true(self._context().Y, self.probabilities)
        first = ranks < k
        return reliability(self.probabilities.data[first].astype(np.float64), true[first])

    def _context(self) -> Context:
        """The ranking that was evaluated."""
        assert self.result is not None
        assert self.result.details is not None
        return self.result.details.context


def members_of(model: Predictor) -> Sequence[Predictor]:
    """A model, or all members of an ensemble."""
    if not isinstance(model, EnsembleModel):
        return [model]
    return [inner for member in model.members for inner in members_of(member)]
