"""What the commands ``train`` and ``ensemble`` do."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

import treetop
from treetop.cli.console import Console, shell_command
from treetop.cli.mistakes import InterruptedRunError, check_encoder_packages
from treetop.cli.options import TrainOptions
from treetop.cli.paths import check_data, check_model, check_split_has_labels, read_data
from treetop.data import Dataset, Split
from treetop.errors import TreetopError
from treetop.estimators import KINDS, Ensemble, XRLinear, XRTransformer
from treetop.features.encoders.opening import is_exported, is_word_vectors
from treetop.features.encoders.sources import find_encoder
from treetop.model import layout as store
from treetop.ranking.combining import COMBINE
from treetop.runtime.progress import Reporter, TimedReporter, duration, reporter
from treetop.settings import presets
from treetop.settings.making import PARAMETERS, check_parameters
from treetop.settings.names import ELSEWHERE, renamed
from treetop.settings.notation import parse_assignment
from treetop.training.run import FACTS, check_run, is_own

LINEAR, TRANSFORMER = "xr-linear", "xr-transformer"
Settings = dict[str, Any]


def model_kind(options: TrainOptions) -> str:
    """The kind of model: ``--model``, else the preset's, else xr-linear."""
    kind = options.model or (presets.kind_of(options.preset) if options.preset else LINEAR)
    if kind not in PARAMETERS:
        raise TreetopError(
            f"unknown model {kind!r}: choose one of {', '.join(PARAMETERS)}; "
            "the name of an encoder goes to --encoder"
        )
    return kind


def model_settings(options: TrainOptions, kind: str) -> Settings:
    """The settings of the preset, changed by ``--encoder`` and then by ``--set``."""
    chosen = presets.settings_of(options.preset, kind) if options.preset else {}
    if options.encoder is not None:
        if kind != TRANSFORMER:
            raise TreetopError("--encoder is for --model xr-transformer: add that, or leave it out")
        chosen["encoder"] = options.encoder
    return {**chosen, **parse_assignments(options.assignments)}


def parse_assignments(assignments: tuple[str, ...]) -> Settings:
    """Settings from ``NAME=VALUE`` strings, under the names that are current."""
    return renamed(dict(map(parse_assignment, assignments)))


def variants(options: TrainOptions, kind: str) -> tuple[list[Settings], str]:
    """The settings of each model to train, all checked, and how the models are combined."""
    common, combine = model_settings(options, kind), "average"
    changes: list[Settings] = [{}]
    if options.combine not in (None, *COMBINE):
        raise TreetopError(f"--combine {options.combine}: choose one of {', '.join(COMBINE)}")
    if options.ensemble and (options.member or options.encoder):
        raise TreetopError(
            "--ensemble takes the members from the preset: leave out --member, --encoder"
        )
    if options.ensemble:
        if options.preset is None:
            raise TreetopError("--ensemble takes the members from a preset: give --preset or --member")
        changes, combine = presets.ensemble_of(options.preset)
    elif options.member:
        changes = [parse_assignments(tuple(member.split(","))) for member in options.member]
    members = [{**common, **change} for change in changes]
    for settings in members:
        check_setting_names(kind, settings)
        check_parameters(kind, settings)
    return members, options.combine or combine


def check_setting_names(kind: str, settings: Settings) -> None:
    """Raise a `TreetopError` for a setting that only the other kind of model has."""
    own, other = PARAMETERS[kind].defaults, PARAMETERS[TRANSFORMER].defaults
    for name in settings:
        meant = name if name in other else ELSEWHERE.get(name)
        if name not in own and meant in other and meant not in own:
            raise TreetopError(
                f"unknown setting {name!r}: {meant!r} is a setting of xr-transformer: "
                "add --model xr-transformer, or leave it out"
            )


def encoders_for_torch(kind: str, members: list[Settings]) -> set[str]:
    """The names of the encoders that the members need torch for."""
    if kind != TRANSFORMER:
        return set()
    default = PARAMETERS[TRANSFORMER].defaults["encoder"]
    names = {str(settings.get("encoder", default)) for settings in members}
    return {name for name in names if not (is_word_vectors(name) or is_exported(name))}


def train_model(options: TrainOptions, console: Console | None = None) -> None:
    """Train on the split `train` and save: one model, or an ensemble of several."""
    console = console or Console()
    kind = model_kind(options)
    members, combine = variants(options, kind)
    if options.resume and kind != TRANSFORMER:
        raise TreetopError(
            "--resume is for xr-transformer: xr-linear trains in one go: leave out --resume"
        )
    store.check_target(options.output)
    encoders = encoders_for_torch(kind, members)
    if encoders:
        check_encoder_packages()
    if kind == TRANSFORMER:
        for number in range(len(members)):
            check_run(run_folder(options.output, number), options.resume, options.overwrite)
    check_data(options.data)
    runs = [run_folder(options.output, number) for number in range(len(members))]
    new_runs = [run for run in runs if not run.exists()]
    try:
        with console.progress() as report:
            for encoder in encoders:  # a wrong name is reported before any data is read
                find_encoder(encoder, report.note)
            summary = train_members(options, kind, members, combine, report)
    except TreetopError:
        discard_unstarted(new_runs)
        raise
    except KeyboardInterrupt:
        if not any((run / FACTS).is_file() for run in runs):
            raise
        resume = console.command_with("--resume", without="--overwrite")
        raise InterruptedRunError(f"interrupted; resume with: {resume}") from None
    if options.json:
        stages = {name: round(seconds, 3) for name, seconds in report.seconds.items()}
        console.json({**summary, "stages": stages})
    else:
        print_summary(options, summary, console)


def train_members(
    options: TrainOptions,
    kind: str,
    members: list[Settings],
    combine: str,
    report: TimedReporter,
) -> Settings:
    """Read the data, train and save; return a summary for the user."""
    dataset = read_data(options.data, options, report)
    split = dataset.split("train")
    check_split_has_labels(split, "learn from")
    note_unlabelled(split, report)
    started = time.perf_counter()
    models = []
    for number, settings in enumerate(members):
        if len(members) > 1:
            report.note(f"member {number + 1} of {len(members)}: {settings.get('encoder', kind)}")
        estimator = KINDS[kind](**settings)
        own = run_options(options, kind, dataset, number)
        models.append(fit(estimator, dataset, split, report=report, **own))
    model = models[0] if len(models) == 1 else Ensemble(models, combine)
    report.step("saving")
    model.save(options.output)
    held_out = dataset.splits.get("test")
    return {
        "output": str(options.output),
        "model": model.kind,
        "format": dataset.format,
        "documents": len(split),
        "labels": len(model.classes_),
        "seconds": round(time.perf_counter() - started, 3),
        "run": str(run_folder(options.output, 0).parent) if kind == TRANSFORMER else None,
        "test": held_out is not None and held_out.has_labels,
    }


def print_summary(options: TrainOptions, summary: Settings, console: Console) -> None:
    """Say what was trained and which commands to type next."""
    model = options.output
    console.message(
        f"{model}: {summary['documents']:,} documents, {summary['labels']:,} labels, "
        f"trained in {duration(summary['seconds'])}"
    )
    if summary["run"] is not None:
        console.message(
            f"{summary['run']} keeps the run: --resume with other settings reuses its stages; "
            "delete it when you no longer need it"
        )
    columns = [part for name in options.text_column for part in ("--text-column", name)]
    if options.labels_column is not None:
        columns += ["--labels-column", options.labels_column]
    data = options.data if summary["test"] else "TESTDATA"
    steps = {
        shell_command("evaluate", model, data, *columns): "metrics on test documents",
        shell_command("predict", model, "texts.txt"): "labels for texts, one per line",
        shell_command("explain", model, "some text"): "why a text gets its labels",
        shell_command("serve", model): "a web page and an HTTP API",
    }
    width = min(max(map(len, steps)), 60)
    console.message("\nNext:")
    for step, about in steps.items():
        console.message(f"  {step.ljust(width)}  # {about}")


def run_folder(output: Path, number: int) -> Path:
    """Where the run of a model is kept during training and afterwards."""
    return output.with_name(f"{output.name}.run") / f"member-{number}"


def discard_unstarted(runs: list[Path]) -> None:
    """Delete runs in which no encoder has been trained, so that the corrected command needs no option.

    A misspelt encoder, for instance, is noticed when the folder of the run exists already.
    """
    for run in filter(Path.is_dir, runs):
        files = list(run.iterdir())
        started = any(file.name.startswith(("level-", "checkpoint")) for file in files)
        if all(map(is_own, files)) and not started:
            shutil.rmtree(run)
            if not any(run.parent.iterdir()):
                run.parent.rmdir()


def run_options(options: TrainOptions, kind: str, dataset: Dataset, number: int) -> Settings:
    """Arguments that only `XRTransformer.fit` takes: its run and the validation split."""
    if kind != TRANSFORMER:
        return {}
    arguments: Settings = {
        "run": run_folder(options.output, number),
        "resume": options.resume,
        "overwrite": options.overwrite,
    }
    held_out = dataset.splits.get(options.validation)
    if held_out is not None and held_out.texts is not None and held_out.has_labels:
        arguments["validation"] = (held_out.texts, held_out.given_labels)
    elif options.validation not in ("dev", "none"):
        raise TreetopError(
            f"the data has no split {options.validation!r} with labels to validate on: "
            "leave out --validation, or give another split"
        )
    return arguments


def fit(
    estimator: XRLinear | XRTransformer,
    dataset: Dataset,
    split: Split,
    report: Reporter | None = None,
    **options: Any,
) -> XRLinear | XRTransformer:
    """Fit on a split, whether its labels are names or a matrix."""
    check_split_has_labels(split, "learn from")
    bars = report if report is not None else reporter()
    names = None if split.labels is not None else dataset.label_names
    try:
        return estimator.fit(
            split.documents, split.given_labels, label_names=names, report=bars, **options
        )
    finally:
        if bars is not report:
            bars.close()


def note_unlabelled(split: Split, report: Reporter) -> None:
    """Note how many documents have no label: they are kept as negatives."""
    lines = split.named_labels(None) if split.has_labels else []
    empty = sum(not line for line in lines)
    if empty:
        report.note(f"{empty:,} documents without a label are kept as negatives")


def join_models(
    folders: list[Path], output: Path, combine: str, console: Console | None = None
) -> None:
    """Save several trained models as one ensemble."""
    store.check_target(output)
    for folder in folders:
        check_model(folder)
    ensemble = Ensemble([treetop.load(str(folder)) for folder in folders], combine)
    ensemble.save(output)
    (console or Console()).message(f"{output}: {len(folders)} models, combined by {combine}")
