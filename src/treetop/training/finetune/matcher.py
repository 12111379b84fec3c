"""Prediction of P[t] = Top(W[t]ᵀ Φ_cat, k): its children are the shortlist of the next level."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from treetop.features.hybrid import Features
from treetop.ranking.matching import predicted_nodes
from treetop.ranking.weights import ClusterWeights
from treetop.settings.notation import at_level
from treetop.settings.parts import MATCHER, RankerSettings
from treetop.training.finetune.problem import TuningProblem


class Beams(NamedTuple):
    """P[t] with scores, shape (N, K[t]), of the training and of the held-out documents."""

    train: sp.csr_matrix
    held_out: sp.csr_matrix | None


def predict_beams(
    problem: TuningProblem,
    t: int,
    M: sp.csr_matrix | None,
    level: Mapping[str, np.ndarray],
    above: Beams | None,
) -> Beams:
    """Predict P[t] among the children of P[t-1] (`above`) with rankers trained on Φ_cat(θ[t]).

    `level` has Φ_dnn(θ[t]) of the training documents as "vectors" and of the held-out ones as "held".
    """
    phi_cat = problem.feature_map
    if problem.settings.center:
        phi_cat = phi_cat.centered_on(level["vectors"])
    X = phi_cat.join(problem.train.tfidf, level["vectors"])
    W = train_matcher(problem, t, M, X)
    train = top_nodes(problem, t, W, X, None if above is None else above.train)
    if problem.held_out is None:
        return Beams(train, None)
    held_X = phi_cat.join(problem.held_out.tfidf, level["held"])
    return Beams(train, top_nodes(problem, t, W, held_X, None if above is None else above.held_out))


def train_matcher(
    problem: TuningProblem, t: int, M: sp.csr_matrix | None, X: Features
) -> list[ClusterWeights]:
    """Learn W[t] with the linear solver on Φ_cat(θ[t]) and M[t]; None: the root's children."""
    settings, reporter = matcher_settings(problem, t), problem.runtime.reporter
    R = problem.relevance_by(settings.cost_sensitive)[t - 1]
    name = problem.step_name("matcher", t)
    return problem.solve(t, X, R, M, settings, report=reporter, name=name)


def top_nodes(
    problem: TuningProblem,
    t: int,
    W: list[ClusterWeights],
    X: Features,
    above: sp.csr_matrix | None,
) -> sp.csr_matrix:
    """Compute Top(W[t]ᵀ Φ_cat, k) among the children of the nodes `above`; None: of the root."""
    return predicted_nodes(
        clusters=W,
        X=X,
        tree=problem.tree,
        level=t,
        settings=matcher_settings(problem, t),
        threads=problem.runtime.thread_count,
        above=above,
    )


def matcher_settings(problem: TuningProblem, t: int) -> RankerSettings:
    """Return the settings of the rankers of level `t`: those of the final rankers, unless given.

    Where the final rankers have values by level, those of their first level are taken.
    """
    settings = problem.settings
    final = RankerSettings(**{name: getattr(settings, name) for name in MATCHER})
    final = final.of_first_level()
    given: dict[str, Any] = {
        "tolerance": settings.matcher_tolerance,
        "lambda_": settings.matcher_lambda,
        "alpha": settings.matcher_alpha,
        "cost_sensitive": settings.matcher_cost_sensitive,
        "bias": settings.matcher_bias,
        "prune_below": settings.matcher_prune_below,
        "score_transform": settings.matcher_score_transform,
    }
    changes = {
        "beam": int(at_level("tune_beam", settings.tune_beam, t, problem.levels)),
        "bias": final.bias or 0.0,
        "passes": min(settings.passes, settings.matcher_passes),
        **{name: value for name, value in given.items() if value is not None},
    }
    return replace(final, **changes)
