"""P[t] = Top(W[t]ᵀ Φ_cat, k): the nodes whose children the next level is trained on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from treetop.features.hybrid import Features
from treetop.ranking.ranker import all_below_root, predicted_nodes
from treetop.ranking.solver import solve_level
from treetop.ranking.weights import ClusterWeights
from treetop.settings.parts import RankerSettings
from treetop.settings.schema import TransformerSettings
from treetop.training.finetune.problem import TuningProblem

# Of the final ranker's settings those that P depends on.
SHARED = tuple(
    field.name
    for field in fields(RankerSettings)
    if field.name not in ("shortlist", "beam", "head_share")
)


class Beams(NamedTuple):
    """P[t] and its scores, N x K[t], for the training documents and for those held back."""

    train: sp.csr_matrix
    held_back: sp.csr_matrix | None


def predict_beams(
    problem: TuningProblem,
    t: int,
    M: sp.csr_matrix | None,
    level: Mapping[str, np.ndarray],
    above: Beams | None,
) -> Beams:
    """P[t], searched among the children of P[t-1] (`above`), from what level `t` has learned.

    `level`: "vectors" are Φ_dnn(θ[t]) of the training documents, "held" those of the others.
    """
    phi_cat = problem.feature_map
    if problem.settings.center:
        phi_cat = phi_cat.centered_on(level["vectors"])
    X = phi_cat.join(problem.train.tfidf, level["vectors"])
    W = train_matcher(problem, t, M, X)
    train = top_nodes(problem, t, W, X, None if above is None else above.train)
    if problem.held_back is None:
        return Beams(train, None)
    held_X = phi_cat.join(problem.held_back.tfidf, level["held"])
    return Beams(train, top_nodes(problem, t, W, held_X, None if above is None else above.held_back))


def train_matcher(
    problem: TuningProblem, t: int, M: sp.csr_matrix | None, X: Features
) -> list[ClusterWeights]:
    """W[t] by the linear solver on Φ_cat(θ[t]) and M[t]; None: the root's children."""
    return solve_level(
        X=X,
        R=problem.matcher_relevance[t - 1],
        M=all_below_root(X.rows) if M is None else M,
        child_ptr=problem.tree.child_ptr[t - 1],
        settings=matcher_settings(problem.settings),
        seed=problem.settings.seed + t,
        threads=problem.runtime.thread_count,
        report=problem.runtime.reporter,
        name=problem.step_name("matcher", t),
        document_weights=problem.train.weights,
    )


def top_nodes(
    problem: TuningProblem,
    t: int,
    W: list[ClusterWeights],
    X: Features,
    above: sp.csr_matrix | None,
) -> sp.csr_matrix:
    """Top(W[t]ᵀ Φ_cat, k) among the children of the nodes `above`; None: of the root."""
    return predicted_nodes(
        clusters=W,
        X=X,
        tree=problem.tree,
        level=t,
        settings=matcher_settings(problem.settings),
        threads=problem.runtime.thread_count,
        above=above,
    )


def matcher_settings(settings: TransformerSettings) -> RankerSettings:
    """The final ranker's, with the beam of fine-tuning and fewer passes: only P is wanted."""
    return replace(
        RankerSettings(**{name: getattr(settings, name) for name in SHARED}),
        beam=settings.tune_beam,
        bias=settings.bias or 0.0,
        passes=min(settings.passes, settings.matcher_passes),
    )
