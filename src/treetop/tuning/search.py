"""A search with optuna: trials in several processes, pruned early, kept in an SQLite file."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from treetop.evaluation.bootstrap import SAMPLES, occurrences, samples_of
from treetop.evaluation.sums import Sums
from treetop.runtime.extras import require
from treetop.settings.schema import LinearSettings
from treetop.tuning.space import Dimension, of_default, suggested
from treetop.tuning.workspace import Workspace

# The name of the study in the file; it says what the trials have in common.
STUDY = "treetop"
# Trials before any is pruned, and before values are suggested by the others.
FIRST_TRIALS = 8


class SharedSearch(NamedTuple):
    """What the processes of a search have in common."""

    default: LinearSettings
    costs: dict[bool, LinearSettings]  # the default with and without cost-sensitive learning
    space: dict[str, Dimension]
    storage: Path
    until: float  # of `time.time`
    trials: int | None
    seed: int


def open_study(search: SharedSearch, fingerprint: str, process: int = 0) -> Any:
    """Open or create the study in the file; its first trial is the default."""
    optuna = require("searches for settings", "tune")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(
        study_name=f"{STUDY}-{fingerprint}",
        storage=f"sqlite:///{search.storage}",
        load_if_exists=True,
        direction="maximize",
        sampler=optuna.samplers.TPESampler(
            seed=search.seed + process, n_startup_trials=FIRST_TRIALS, multivariate=True
        ),
        pruner=optuna.pruners.PercentilePruner(50.0, n_startup_trials=FIRST_TRIALS),
    )
    if process == 0 and not study.trials:
        study.enqueue_trial(of_default(search.space, search.default))
    return study


def settings_of_trial(search: SharedSearch, trial: Any) -> LinearSettings:
    """The settings that a trial chooses, or has chosen."""
    return replace(search.default, **suggested(trial, search.space, search.default, search.costs))


def run_trials(
    study: Any,
    search: SharedSearch,
    workspace: Workspace,
    kept: dict[int, Sums],
    told: Callable[[Any], None] | None = None,
) -> None:
    """Try settings until the time is over; `told` is called with the study after each trial.

    `kept` receives the metric of the default and of the best trial, by number.
    """
    optuna = require("searches for settings", "tune")

    def objective(trial: Any) -> float:
        value = 0.0
        for step, sums in enumerate(workspace.growing(settings_of_trial(search, trial))):
            value, kept[trial.number] = sums.value, sums
            trial.report(value, step)
            if trial.number and (trial.should_prune() or time.time() > search.until):
                raise optuna.TrialPruned
        return value

    def finished(study: Any, trial: Any) -> None:
        needed = {0, *(best.number for best in complete_trials(study)[:1])}
        for number in kept.keys() - needed:
            del kept[number]
        if told is not None:
            told(study)
        enough = search.trials is not None and len(study.trials) >= search.trials
        if enough or time.time() > search.until:
            study.stop()

    study.optimize(objective, callbacks=[finished], catch=(MemoryError,))


def complete_trials(study: Any) -> list[Any]:
    """The trials that were neither pruned nor interrupted, best first; of equal ones the earlier."""
    done = [trial for trial in study.get_trials(deepcopy=False) if trial.state.name == "COMPLETE"]
    return sorted(done, key=lambda trial: (-trial.value, trial.number))


def share_better(a: Sums, b: Sums, shape: tuple[int, int], seed: int) -> float:
    """The share of resampled sets of documents on which the metric `a` is better than `b`.

    `shape` is the number of documents and of labels.
    """
    documents, labels = shape
    wins = [
        a.resampled(weights) > b.resampled(weights)
        for drawn in samples_of(documents, SAMPLES, seed, labels)
        for weights in [occurrences(drawn)]
    ]
    return float(np.concatenate(wins).mean())
