"""What an encoder is fine-tuned on, and how: the inputs of Algorithm 2's first loop."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from treetop.features.encoders.subwords import Ragged
from treetop.features.feature_map import FeatureMap
from treetop.labels.relevance import all_levels
from treetop.labels.tree import Tree
from treetop.runtime import Runtime
from treetop.settings import auto
from treetop.settings.schema import TransformerSettings


@dataclass(frozen=True)
class TuningDocuments:
    """Documents as fine-tuning sees them: both halves of Φ_cat, and their labels."""

    tfidf: sp.csr_matrix
    tokens: Ragged
    Y: sp.csr_matrix
    weights: np.ndarray | None = None  # float32, what each document counts for; None: all the same


@dataclass(frozen=True)
class TuningProblem:
    """Documents, the preliminary tree, and how many of its levels are fine-tuned (D̂)."""

    train: TuningDocuments
    held_back: TuningDocuments | None
    tree: Tree
    levels: int
    feature_map: FeatureMap  # of the model: P is predicted from the same Φ_cat
    settings: TransformerSettings
    runtime: Runtime

    def __post_init__(self) -> None:
        _ = self.steps  # a budget that does not suit the levels is an error before any work

    @cached_property
    def relevance(self) -> list[sp.csr_matrix]:
        """R[1] … R[D]: what the levels are trained on, R[t] at index t - 1."""
        return all_levels(self.train.Y, self.tree, self.settings.tune_cost_sensitive)

    @cached_property
    def matcher_relevance(self) -> list[sp.csr_matrix]:
        """The same as the rankers that make P see it."""
        cost_sensitive = bool(self.settings.cost_sensitive)
        if cost_sensitive == self.settings.tune_cost_sensitive:
            return self.relevance
        return all_levels(self.train.Y, self.tree, cost_sensitive)

    @cached_property
    def steps(self) -> list[int]:
        """Steps of each fine-tuned level."""
        settings = self.settings
        return auto.steps_by_level(settings.budget, self.levels, self.train.tokens.rows, settings.batch)

    @property
    def predicts_beams(self) -> bool:
        """Whether P is made. Where a document is trained on all nodes of a level it is not wanted."""
        return self.settings.tune_shortlist == "beam"

    def step_name(self, action: str, t: int) -> str:
        """What a reporter calls a step of level `t`."""
        return f"{action}, level {t} of {self.levels}"
