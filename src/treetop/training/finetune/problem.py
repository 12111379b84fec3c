"""The inputs of fine-tuning, the first loop of Algorithm 2."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from treetop.features.encoders.subwords import Ragged
from treetop.features.feature_map import FeatureMap
from treetop.features.hybrid import Features
from treetop.labels.relevance import all_levels
from treetop.labels.tree import Tree
from treetop.ranking.matching import all_below_root
from treetop.ranking.solver import solve_level
from treetop.ranking.weights import ClusterWeights
from treetop.runtime import Runtime
from treetop.runtime.progress import Reporter
from treetop.settings import auto
from treetop.settings.parts import RankerSettings
from treetop.settings.schema import TransformerSettings
from treetop.training.finetune.weighting import Weighting, weighting_of


@dataclass(frozen=True)
class TuningDocuments:
    """The documents of fine-tuning: TF-IDF features, tokens, labels and weights."""

    tfidf: sp.csr_matrix
    tokens: Ragged
    Y: sp.csr_matrix
    weights: np.ndarray | None = None  # float32, by document; None: all 1


@dataclass(frozen=True)
class TuningProblem:
    """Documents, the preliminary tree and the number of its levels to fine-tune (D̂)."""

    train: TuningDocuments
    held_out: TuningDocuments | None
    tree: Tree
    levels: int
    feature_map: FeatureMap  # P is predicted from the same Φ_cat as the final labels
    settings: TransformerSettings
    runtime: Runtime

    def __post_init__(self) -> None:
        _ = self.steps, self.warmup  # raise if they do not match the number of levels

    @cached_property
    def weighting(self) -> Weighting:
        """The weights of the objective."""
        return weighting_of(self.settings, self.settings.tune_weighting)

    @property
    def relevance(self) -> list[sp.csr_matrix]:
        """R[1] … R[D], on which the levels are trained; R[t] has index t - 1."""
        return self.relevance_by(self.weighting.summed)

    def relevance_by(self, summed: bool) -> list[sp.csr_matrix]:
        """R[1] … R[D], as sums over the labels of a node or as their maximum."""
        return self.summed_relevance if summed else self.largest_relevance

    @cached_property
    def summed_relevance(self) -> list[sp.csr_matrix]:
        """R[1] … R[D] as sums."""
        return all_levels(self.train.Y, self.tree, cost_sensitive=True)

    @cached_property
    def largest_relevance(self) -> list[sp.csr_matrix]:
        """R[1] … R[D] as maxima."""
        return all_levels(self.train.Y, self.tree, cost_sensitive=False)

    @cached_property
    def steps(self) -> list[int]:
        """Number of steps of each fine-tuned level."""
        settings = self.settings
        return auto.steps_by_level(settings.budget, self.levels, self.train.tokens.rows, settings.batch)

    @cached_property
    def warmup(self) -> list[int]:
        """Number of steps of each fine-tuned level in which the learning rate rises."""
        return auto.warmup_steps(self.settings.warmup, self.steps)

    @property
    def trains_on_shortlists(self) -> bool:
        """Whether a document is trained on its shortlist instead of on all nodes."""
        return self.settings.tune_shortlist != "all"

    @property
    def predicts_beams(self) -> bool:
        """Whether P is predicted, which is necessary only if it is part of the shortlists."""
        return self.settings.tune_shortlist == "beam"

    def solve(
        self,
        t: int,
        X: Features,
        R: sp.csr_matrix,
        M: sp.csr_matrix | None,
        settings: RankerSettings,
        *,
        report: Reporter,
        name: str = "",
    ) -> list[ClusterWeights]:
        """Learn W[t] on X, R[t] and M[t] with the linear solver; M is None for the root's children."""
        return solve_level(
            X,
            R,
            all_below_root(X.rows) if M is None else M,
            self.tree.child_ptr[t - 1],
            settings,
            seed=self.settings.seed + t,
            threads=self.runtime.thread_count,
            report=report,
            name=name,
            document_weights=self.train.weights,
        )

    def step_name(self, action: str, t: int) -> str:
        """Return the name of a step of level `t` for the reporter."""
        return f"{action}, level {t} of {self.levels}"
