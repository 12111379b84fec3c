"""Weights of a level's loss: those of the paper, or those of PECOS."""

from __future__ import annotations

from dataclasses import dataclass

import scipy.sparse as sp

from treetop.labels.relevance import positive_weights
from treetop.settings.schema import TransformerSettings


@dataclass(frozen=True)
class Weighting:
    """How much each document and node of a level counts in the objective of fine-tuning.

    ========== =================================== ========= ================ =======
    name       a positive                          negative  sum over         plus
    ========== =================================== ========= ================ =======
    relevance  R̂, or 1 without cost sensitivity    α         the candidates   λ‖W‖²
    counts     R: its labels below the node        1         mean over them   nothing
    equal      1                                   1         mean over them   nothing
    ========== =================================== ========= ================ =======

    ``counts`` with squared hinge is PECOS's weighted-squared-hinge, ``equal`` its squared-hinge.
    """

    summed: bool  # whether R[t] adds up the relevance of the labels below a node; or is their maximum
    normalized: bool  # whether the rows of R[t] are divided by their sums
    alpha: float  # weight of negatives
    penalty: float  # λ
    mean: bool  # over the candidates, instead of the sum

    def of_positives(self, R: sp.csr_matrix) -> sp.csr_matrix:
        """Return the weights of the positives of a level."""
        return positive_weights(R, self.normalized)

    def factor(self, candidates: int) -> float:
        """Return the factor of the sum over a document's candidates.

        The mean is over as many `candidates` as the document that has most of them has: PECOS pads the
        shortlists of all others to that length.
        """
        return 1.0 / candidates if self.mean else 1.0


def weighting_of(settings: TransformerSettings, name: str) -> Weighting:
    """Return the weighting of this name; ``relevance`` is governed by further settings."""
    if name == "relevance":
        sensitive = settings.tune_cost_sensitive
        return Weighting(
            summed=sensitive,
            normalized=sensitive,
            alpha=settings.tune_alpha,
            penalty=settings.tune_lambda,
            mean=False,
        )
    return Weighting(summed=name == "counts", normalized=False, alpha=1.0, penalty=0.0, mean=True)
