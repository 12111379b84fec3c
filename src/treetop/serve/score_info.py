"""Describe the scores of a model to people: what they are called, their range, what they mean."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from treetop.model.ensemble import EnsembleModel
from treetop.model.model import Model
from treetop.model.predictor import Predictor
from treetop.ranking.combining import LINEAR_RANK, LISTED, parsed_combine

COMBINED = {
    "rank": "Weighted mean of 1 / rank over the members of the ensemble.",
    "linear-rank": "Weighted mean of linear ranks: 100 for the first label, 0 for unlisted ones.",
    "sigmoid": "Weighted mean of the sigmoids of the members' scores.",
    "softmax": "Weighted mean of the softmax of the members' scores.",
}


def score_info(model: Predictor) -> dict[str, Any]:
    """Name, minimum, maximum and description of the scores that a model returns."""
    if isinstance(model, EnsembleModel) and model.combine != "average":
        raw, how = parsed_combine(model.combine)
        if how == "average":
            return info("raw score", None, None, "Weighted mean of the members' raw scores, unbounded.")
        largest = float(LISTED) if how == LINEAR_RANK else 1.0
        meaning = COMBINED[how].replace("scores", "raw scores") if raw else COMBINED[how]
        return info("score", 0.0, largest, f"{meaning} Not a calibrated probability.")
    transforms = sorted(set(transforms_of(model)))  # of the labels' level
    names = " and ".join(transforms)
    if transforms == ["identity"]:
        return info("raw score", None, None, "The raw score of the linear ranker, unbounded.")
    if "identity" in transforms:
        return info("score", None, None, f"A mean of scores of different kinds: {names}.")
    if any(name.startswith("log-") for name in transforms):
        return info("log score", None, 0.0, f"A logarithm ({names}): 0 is the best possible score.")
    meaning = f"From 0 to 1 ({names} of the raw scores). Not a calibrated probability."
    return info("score", 0.0, 1.0, meaning)


def info(name: str, minimum: float | None, maximum: float | None, description: str) -> dict[str, Any]:
    """The JSON object of /v1/model."""
    return {"name": name, "minimum": minimum, "maximum": maximum, "description": description}


def transforms_of(model: Predictor) -> Iterator[str]:
    """The score transform of every tree."""
    if isinstance(model, EnsembleModel):
        for member in model.members:
            yield from transforms_of(member)
    else:
        for ranker in cast(Model, model).rankers:
            yield ranker.settings.at(ranker.tree.depth, ranker.tree.depth).score_transform
