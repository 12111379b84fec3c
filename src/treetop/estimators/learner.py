"""The base of XRLinear and XRTransformer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self, cast

import numpy as np

from treetop.base import FittedMixin
from treetop.model.model import Model
from treetop.model.predictor import Predictor
from treetop.parameters import ParametersMixin
from treetop.ranking.ranker import Ranker
from treetop.runtime import Runtime
from treetop.settings.making import to_parameters
from treetop.settings.schema import LinearSettings


class Learner(ParametersMixin, FittedMixin):
    """An estimator with settings, which learns one model."""

    kind = "xr-linear"
    model_: Model

    @property
    def settings_(self) -> LinearSettings:
        """Settings of the model, with everything that was left open decided."""
        return self.model_.settings

    @property
    def rankers_(self) -> tuple[Ranker, ...]:
        """Label trees with their weights."""
        return self.model_.rankers

    @property
    def n_features_in_(self) -> int:
        """Number of features: sparse and dense together."""
        return sum(self.model_.widths)

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Names of the columns of a table that the model was trained on; other data has none."""
        names = self.model_.feature_names
        if names is None:
            raise AttributeError("the model was not trained on features with names")
        return np.array(names.listed(), dtype=object)

    def _with_parts(self, parts: dict[str, Any]) -> Self:
        estimator = type(self)(**self.get_params())
        estimator.model_ = replace(self.model_, **parts)
        return estimator

    @classmethod
    def holding(cls, model: Predictor, runtime: Runtime | None = None) -> Self:
        """Make an estimator that holds a model, with its settings."""
        model = cast(Model, model)
        estimator = cls(**to_parameters(model.settings, model.asked, cls.parameters, runtime))
        estimator.model_ = model
        return estimator
