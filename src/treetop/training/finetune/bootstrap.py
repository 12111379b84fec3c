"""Initialization of W[t]: bootstrapping by the linear solver on Φ_dnn(θ[t-1]), equation 11."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from treetop.features.hybrid import features
from treetop.runtime.progress import Reporter
from treetop.settings.parts import RankerSettings
from treetop.settings.schema import TransformerSettings
from treetop.training.finetune.head import Head
from treetop.training.finetune.problem import TuningProblem
from treetop.training.finetune.weighting import weighting_of


def new_head(problem: TuningProblem, t: int, width: int) -> Head:
    """Create a head with W[t] = 0; for BCE, the biases are set to the frequencies of the nodes."""
    R, settings = problem.relevance[t - 1], problem.settings
    head = Head(problem.tree.sizes[t - 1], width, settings.dropout)
    if settings.tune_loss == "bce":
        head.start_from_shares(R.getnnz(axis=0) / R.shape[0])
    return head


def bootstrap_solution(
    problem: TuningProblem, t: int, M: sp.csr_matrix | None, vectors: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Solve W_init[t] = argmin Σ R̂ L(Y, Wᵀ Φ_dnn(θ[t-1])) + λ‖W‖² over M.

    Returns W, float32 of shape (nodes, columns), and the biases.
    """
    settings = bootstrap_settings(problem.settings)
    R = problem.relevance_by(settings.cost_sensitive)[t - 1]
    clusters = problem.solve(t, features(dense=vectors), R, M, settings, report=Reporter())
    weight = np.concatenate([cluster.dense.T for cluster in clusters])
    return weight, np.concatenate([cluster.biases for cluster in clusters])


def bootstrap_settings(settings: TransformerSettings) -> RankerSettings:
    """Express the objective of fine-tuning in settings of the linear solver."""
    weighting = weighting_of(settings, settings.bootstrap_weighting or settings.tune_weighting)
    return RankerSettings(
        loss="logistic" if settings.tune_loss == "bce" else settings.tune_loss,
        lambda_=settings.bootstrap_lambda or settings.tune_lambda,
        alpha=settings.bootstrap_alpha or weighting.alpha,
        cost_sensitive=weighting.summed,
        relevance_norm="l1" if weighting.normalized else "none",
        bias=1.0,
        passes=settings.bootstrap_passes or settings.passes,
        tolerance=settings.bootstrap_tolerance or settings.tolerance,
    )
