"""Where W[t] starts: the paper's bootstrapping, by the linear solver on Φ_dnn(θ[t-1])."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from treetop.features.hybrid import features
from treetop.ranking.ranker import all_below_root
from treetop.ranking.solver import solve_level
from treetop.runtime.progress import Reporter
from treetop.settings.parts import RankerSettings
from treetop.settings.schema import TransformerSettings
from treetop.training.finetune.head import Head
from treetop.training.finetune.problem import TuningProblem


def new_head(problem: TuningProblem, t: int, width: int) -> Head:
    """W[t] = 0; the biases say what is known of a document whose vector says nothing."""
    R, settings = problem.relevance[t - 1], problem.settings
    head = Head(problem.tree.sizes[t - 1], width, settings.dropout)
    if settings.tune_loss == "bce":
        head.start_from_shares(R.getnnz(axis=0) / R.shape[0])
    return head


def is_bootstrapped(settings: TransformerSettings, t: int) -> bool:
    """Whether the settings ask for it at level `t`."""
    return settings.bootstrap_first if t == 1 else settings.bootstrap


def bootstrap_solution(
    problem: TuningProblem, t: int, M: sp.csr_matrix | None, vectors: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """W_init[t] = argmin Σ R̂ L(Y, Wᵀ Φ_dnn(θ[t-1])) + λ‖W‖² over M: nodes x columns, and biases."""
    R = problem.relevance[t - 1]
    clusters = solve_level(
        X=features(dense=vectors),
        R=R,
        M=all_below_root(R.shape[0]) if M is None else M,
        child_ptr=problem.tree.child_ptr[t - 1],
        settings=bootstrap_settings(problem.settings),
        seed=problem.settings.seed + t,
        threads=problem.runtime.thread_count,
        report=Reporter(),
        name="",
        document_weights=problem.train.weights,
    )
    weight = np.concatenate([cluster.dense.T for cluster in clusters])
    return weight, np.concatenate([cluster.biases for cluster in clusters])


def bootstrap_settings(settings: TransformerSettings) -> RankerSettings:
    """The objective of fine-tuning, as the linear solver states it."""
    return RankerSettings(
        loss="logistic" if settings.tune_loss == "bce" else settings.tune_loss,
        lambda_=settings.tune_lambda,
        alpha=settings.tune_alpha,
        cost_sensitive=settings.tune_cost_sensitive,
        bias=1.0,
        passes=settings.passes,
        tolerance=settings.tolerance,
    )
