"""The outcome of a search: the best settings, if they are reliably better than the defaults."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from treetop.errors import TreetopError
from treetop.evaluation.sums import Sums
from treetop.runtime.files import replacing_file
from treetop.settings.schema import TransformerSettings
from treetop.tuning.search import SharedSearch, complete_trials, settings_of_trial, share_better
from treetop.tuning.workspace import Workspace

# Tuned settings replace the defaults if they win on this share of the resampled held-out documents.
CERTAIN = 0.95


@dataclass(frozen=True)
class Tuned:
    """The outcome of a search.

    Attributes
    ----------
    kind : str
        Kind of model: xr-linear or xr-transformer.
    settings : dict
        Settings for the constructor; empty if no settings are reliably better than the defaults.
    metric : str
        What was maximized.
    value, default_value : float
        The metric on the held-out documents, with these settings and with the defaults.
    certainty : float
        Share of resampled sets of held-out documents on which the best settings beat the defaults.
    trials : int
        Number of trials, with those that were pruned.
    """

    kind: str
    settings: dict[str, Any]
    metric: str
    value: float
    default_value: float
    certainty: float
    trials: int

    def save(self, path: str | Path) -> None:
        """Write a preset, which ``train --preset`` and `from_preset` take."""
        about = (
            f"found by treetop tune in {self.trials} trials: {self.metric} {self.value:.4f} on "
            f"held-out documents, {self.default_value:.4f} with the defaults"
        )
        preset = {"about": about, "model": self.kind, "settings": self.settings}
        with replacing_file(Path(path)) as file:
            file.write(json.dumps(preset, indent=2) + "\n")


def measured_again(
    workspace: Workspace, search: SharedSearch, trial: Any, kept: dict[int, Sums]
) -> Sums:
    """The metric of a trial: trained again if another process, or an earlier search, had it."""
    if trial.number in kept:
        return kept[trial.number]
    *_, sums = workspace.growing(settings_of_trial(search, trial))
    return sums


def outcome(
    study: Any,
    search: SharedSearch,
    workspace: Workspace,
    kept: dict[int, Sums],
    kind: str,
    given: dict[str, Any],
) -> Tuned:
    """Choose the best settings, unless they are not reliably better than the defaults."""
    done = complete_trials(study)
    default = [trial for trial in done if trial.number == 0]
    if not default:
        raise TreetopError("the search was stopped before its first trial: give it more time")
    best, certainty = done[0], 0.0
    if best.number:
        a, b = (measured_again(workspace, search, trial, kept) for trial in (best, default[0]))
        certainty = share_better(a, b, workspace.documents.held_labels.shape, search.seed)
    if certainty < CERTAIN:
        best = default[0]
    found = dict(given)
    if best.number:
        chosen = settings_of_trial(search, best)
        found |= {name: getattr(chosen, name) for name in search.space}
        found["competition"] = False
        if isinstance(chosen, TransformerSettings):
            found["fine_tune"] = False
    return Tuned(
        kind,
        found,
        workspace.metric,
        float(best.value),
        float(default[0].value),
        certainty,
        len(study.get_trials(deepcopy=False)),
    )
