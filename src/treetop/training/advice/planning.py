"""A plan within a time: the highest quality whose estimate fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import scipy.sparse as sp

from treetop.runtime import Runtime
from treetop.settings.making import PARAMETERS
from treetop.settings.quality import plans
from treetop.training.advice.advising import Estimate, estimate_training


class TimePlan(NamedTuple):
    """What to train. The settings, and with them the seed, reproduce the model on any machine."""

    quality: str
    settings: dict[str, Any]
    estimate: Estimate | None  # None for so few documents that any quality takes seconds
    fits: bool


def plan_within(
    seconds: float,
    texts: Sequence[str],
    Y: sp.csr_matrix,
    kind: str,
    given: Mapping[str, Any],
    runtime: Runtime,
    highest: str = "best",
) -> TimePlan:
    """Choose the highest quality, up to `highest`, that is estimated to take at most `seconds`.

    With an encoder, one that is tuned in part or frozen comes between balanced and quick. `given` are
    settings that are kept. If no quality fits, the plan is the lowest one.
    """
    for quality, spent in plans(kind, highest):
        settings = {**spent, **given}
        method = PARAMETERS[kind].settings(settings)
        estimate, _ = estimate_training(texts, Y, method, runtime)
        if estimate is None or estimate.seconds <= seconds:
            return TimePlan(quality, settings, estimate, True)
    return TimePlan(quality, settings, estimate, False)
