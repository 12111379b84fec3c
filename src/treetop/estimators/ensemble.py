"""Ensemble, and the estimator for a model of any kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, cast

from treetop.base import FittedMixin
from treetop.errors import TreetopError
from treetop.estimators.linear import XRLinear
from treetop.estimators.transformer import XRTransformer
from treetop.model.calibration import Calibration
from treetop.model.ensemble import EnsembleModel
from treetop.model.predictor import Predictor
from treetop.model.thresholds import Thresholds
from treetop.ranking.combining import check_combine, parsed_combine
from treetop.runtime import Runtime


class Ensemble(FittedMixin):
    """Several fitted models over the same labels, whose scores are combined label by label.

    Parameters
    ----------
    members : sequence of XRLinear, XRTransformer or Ensemble
        Fitted models with the same labels.
    combine : {'average', 'rank', 'linear-rank', 'sigmoid', 'softmax'} or one with 'raw-', optional
        Mean of the scores (``"average"``, the default); or mean after a function of them: ``"rank"`` is
        1 / rank, ``"sigmoid"`` the logistic function, ``"softmax"`` is over the labels listed for a
        document. ``"linear-rank"`` is PECOS's rank average: 100 for the first label that a member
        lists, 99 for the second, …, and 0 for labels that it does not list. Before any of them,
        ``"raw-"`` replaces the scores by the raw ones of the labels' rankers, such as
        ``"raw-softmax"``.
    weights : sequence of float, optional
        Weight of each member; by default all weigh the same.

    Attributes
    ----------
    classes_ : array of shape (L,)
        Label names, in the order of the columns of scores.
    train_counts_ : array of shape (L,)
        Number of training documents per label, of the first member.
    train_documents_ : int
        Number of training documents of the first member.
    calibration_ : Calibration or None
        From combined scores to probabilities: see `calibrate`.
    thresholds_ : Thresholds or None
        Thresholds of these probabilities.

    Examples
    --------
    >>> import treetop
    >>> texts, labels = ["red apple", "green grass"] * 5, [["red"], ["green"]] * 5
    >>> members = [treetop.XRLinear(seed=seed).fit(texts, labels) for seed in (0, 1)]
    >>> ensemble = treetop.Ensemble(members, weights=[2, 1])
    >>> ensemble
    Ensemble([XRLinear(), XRLinear(seed=1)], weights=[2, 1])
    >>> ensemble.predict(["green"], k=1)[0][0][0]
    'green'
    """

    kind = "ensemble"

    def __init__(
        self,
        members: Sequence[FittedMixin],
        combine: str = "average",
        weights: Sequence[float] | None = None,
    ) -> None:
        if not members:
            raise TreetopError("an ensemble needs at least one model")
        check_combine(combine)
        if parsed_combine(combine)[0] and any(isinstance(one, Ensemble) for one in members):
            raise TreetopError(
                f"combine is {combine!r}, but a member is an ensemble, which has no raw scores: give "
                "its members"
            )
        self.members, self.combine = list(members), combine
        self.weights = list(weights) if weights is not None else [1.0] * len(members)
        if len(self.weights) != len(members) or min(self.weights) < 0 or not any(self.weights):
            raise TreetopError("weights: give one number of at least 0 per model, not all 0")
        first = list(members[0].classes_)
        for number, member in enumerate(members[1:], start=2):
            if list(member.classes_) != first:
                raise TreetopError(
                    f"model {number} has other labels than the first: train both on the same data set"
                )
        self.calibration_: Calibration | None = None
        self.thresholds_: Thresholds | None = None

    @property
    def model_(self) -> EnsembleModel:  # type: ignore[override]
        """The members' current models, combined."""
        return EnsembleModel(
            tuple(member.model_ for member in self.members),
            self.combine,
            tuple(self.weights),
            self.calibration_,
            self.thresholds_,
        )

    def __repr__(self) -> str:
        combine = "" if self.combine == "average" else f", combine={self.combine!r}"
        weights = "" if len(set(self.weights)) == 1 else f", weights={self.weights!r}"
        return f"Ensemble({self.members!r}{combine}{weights})"

    def _with_parts(self, parts: dict[str, Any]) -> Self:
        ensemble = type(self)(self.members, self.combine, self.weights)
        ensemble.calibration_, ensemble.thresholds_ = parts["calibration"], parts["thresholds"]
        return ensemble

    def _own_runtime(self) -> Runtime:
        return self.members[0]._own_runtime()

    @classmethod
    def holding(cls, model: Predictor, runtime: Runtime | None = None) -> Self:
        """Make an ensemble of the members of a model."""
        model = cast(EnsembleModel, model)
        members = [estimator_of(member, runtime) for member in model.members]
        ensemble = cls(members, model.combine, model.weights)
        ensemble.calibration_ = model.calibration
        ensemble.thresholds_ = model.thresholds
        return ensemble


KINDS: dict[str, type[XRLinear | XRTransformer]] = {
    estimator.kind: estimator for estimator in (XRLinear, XRTransformer)
}


def estimator_of(
    model: Predictor, runtime: Runtime | None = None
) -> XRLinear | XRTransformer | Ensemble:
    """Make the estimator that holds a model, whatever its kind."""
    kind = Ensemble if isinstance(model, EnsembleModel) else KINDS[model.kind]
    return kind.holding(model, runtime)
