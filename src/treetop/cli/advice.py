"""What ``treetop train`` estimates and warns of before the work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from treetop.cli.members import TRANSFORMER, Settings
from treetop.cli.options import TrainOptions
from treetop.data import Dataset
from treetop.errors import TreetopError
from treetop.kernels import common_kernels
from treetop.kernels.warming import warm_up
from treetop.runtime.progress import Reporter
from treetop.settings.making import PARAMETERS
from treetop.settings.notation import parse_time
from treetop.training import read_labels
from treetop.training.advice.advising import Estimate, estimate_training
from treetop.training.advice.planning import plan_within
from treetop.training.advice.sample import sampled_rows

if TYPE_CHECKING:  # importing it takes time that most trainings do not need
    from treetop.tuning.encoder_trial import Decision


def advise(
    options: TrainOptions, kind: str, members: list[Settings], dataset: Dataset, report: Reporter
) -> dict[str, Any] | None:
    """Note the estimate of each member, and a warning if memory will not do; return the estimates.

    None where nothing is estimated: for few documents, precomputed features, or several machines.
    """
    split = dataset.split("train")
    if split.texts is None or split.X is not None or options.cluster or options.processes > 1:
        return None
    if not sampled_rows(split.texts).size:
        return None
    names = None if split.labels is not None else dataset.label_names
    Y, _ = read_labels(split.given_labels, names)
    estimates = []
    for settings in members:
        parameters = PARAMETERS[kind]
        runtime = parameters.runtime(settings).changed(reporter=report)
        warm_up(common_kernels(), runtime.threads, report)
        report.step("estimate")
        estimate, warning = estimate_training(split.texts, Y, parameters.settings(settings), runtime)
        assert estimate is not None
        report.note(estimate.line())
        if warning is not None:
            report.note(warning)
        estimates.append(estimate)
    return summed_up(estimates, 1 if options.hold_out is None else 2)


def dialled(
    options: TrainOptions, kind: str, members: list[Settings], dataset: Dataset, report: Reporter
) -> tuple[str, list[Settings], str]:
    """The kind of model and the settings that ``--time`` and ``--quality best`` stand for on the data.

    Also a line that says why an encoder is used, or is not; empty if that was not tried.
    """
    given = members
    if options.time is not None:
        members = planned(options, kind, members, dataset, report)
    best = options.quality == "best" or (options.time is not None and options.quality is None)
    split = dataset.split("train")
    one_of_texts = len(members) == 1 and split.texts is not None and split.X is None
    if not best or kind != TRANSFORMER or not one_of_texts:
        return kind, members, ""
    decided = ("fine_tune", "tuned_layers")  # by trials, unless by hand
    asked = {name: members[0][name] for name in members[0] if name not in decided or name in given[0]}
    decision = encoder_decision(options, asked, dataset, report)
    if decision is None:
        return kind, members, ""
    report.note(decision.line)
    chosen = decision.candidate
    known = PARAMETERS[chosen.kind].defaults
    if chosen.kind != kind and options.time is not None:  # there is time for more without the encoder
        own = {name: value for name, value in given[0].items() if name in known}
        return chosen.kind, planned(options, chosen.kind, [own], dataset, report), decision.line
    settings = {name: value for name, value in asked.items() if name in known}
    return chosen.kind, [{**settings, **chosen.settings}], decision.line


def encoder_decision(
    options: TrainOptions, settings: Settings, dataset: Dataset, report: Reporter
) -> Decision | None:
    """Decide between uses of the encoder, and words alone unless xr-transformer was asked for."""
    from treetop.tuning.encoder_trial import Candidate, decided_for

    split = dataset.split("train")
    texts = list(split.texts or ())
    Y, _ = read_labels(split.given_labels, None if split.labels is not None else dataset.label_names)
    runtime = PARAMETERS[TRANSFORMER].runtime(settings).changed(reporter=report)
    warm_up(common_kernels(), runtime.threads, report)

    def fits(candidate: Candidate, share: float) -> bool:
        if options.time is None:
            return True
        method = PARAMETERS[candidate.kind].settings({**settings, **candidate.settings})
        estimate, _ = estimate_training(texts, Y, method, runtime)
        return estimate is None or (1 + share) * estimate.seconds <= parse_time(options.time)

    return decided_for(texts, Y, settings, runtime, options.model is not None, fits)


def planned(
    options: TrainOptions, kind: str, members: list[Settings], dataset: Dataset, report: Reporter
) -> list[Settings]:
    """The settings with which the members are estimated to take ``--time`` in all."""
    split = dataset.split("train")
    if split.texts is None or split.X is not None:
        raise TreetopError("--time plans for texts, not for precomputed features: give --quality")
    assert options.time is not None
    Y, _ = read_labels(split.given_labels, None if split.labels is not None else dataset.label_names)
    seconds = parse_time(options.time) / len(members) / (1 if options.hold_out is None else 2)
    plans = []
    for settings in members:
        runtime = PARAMETERS[kind].runtime(settings).changed(reporter=report)
        warm_up(common_kernels(), runtime.threads, report)
        report.step("plan")
        highest = options.quality or "best"
        plan = plan_within(seconds, split.texts, Y, kind, settings, runtime, highest)
        late = "" if plan.fits else ", although it is estimated to take longer"
        report.note(f"plan for {options.time}: quality {plan.quality}{late}")
        plans.append(plan.settings)
    return plans


def summed_up(estimates: list[Estimate], times: int) -> dict[str, Any]:
    """All estimates as one; each member is trained so many times, one after the other."""
    if len(estimates) == 1 and times == 1:
        return estimates[0].as_json()
    return {
        "seconds": round(times * sum(estimate.seconds for estimate in estimates), 2),
        "memory": max(estimate.memory for estimate in estimates),
        "disk": sum(estimate.disk for estimate in estimates),
        "members": [estimate.as_json() for estimate in estimates],
    }
