"""What the commands ``train`` and ``ensemble`` do."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import treetop
from treetop.cli.advice import advise, dialled
from treetop.cli.console import Console, shell_command
from treetop.cli.holding_out import held_out_metrics
from treetop.cli.members import TRANSFORMER, Settings, encoders_for_torch, model_kind, variants
from treetop.cli.mistakes import InterruptedRunError
from treetop.cli.options import TrainOptions
from treetop.cli.paths import check_all_data, check_model, check_split_has_labels, read_all
from treetop.cli.runs import discard_unstarted, run_folder, run_folders, run_options
from treetop.data import Dataset, Split
from treetop.errors import TreetopError
from treetop.estimators import KINDS, Ensemble, XRLinear, XRTransformer
from treetop.evaluation.result import Evaluation
from treetop.features.encoders.sources import find_encoder
from treetop.model import layout as store
from treetop.model.training_record import TrainingRecord
from treetop.runtime import Runtime
from treetop.runtime.extras import EXTRAS, check_installed
from treetop.runtime.files import reserving
from treetop.runtime.memory import peak_memory
from treetop.runtime.processes import joined_by_torchrun
from treetop.runtime.progress import Reporter, TimedReporter, duration, reporter
from treetop.runtime.temporary import temporary_folder
from treetop.training.run import FACTS, check_run


def train_model(options: TrainOptions, console: Console | None = None) -> None:
    """Train on the split `train` and save: one model, or an ensemble of several.

    Of several processes that torchrun has started, only the first does; the others follow it.
    """
    kind = model_kind(options)
    members, combine = variants(options, kind)
    if options.memory is not None:
        members = [{**settings, "memory": options.memory} for settings in members]
    stall_minutes = members[0].get("stall_minutes", Runtime().stall_minutes)
    with joined_by_torchrun(60 * float(stall_minutes)) as team:
        if team.leads:
            train_and_save(options, kind, members, combine, console or Console())
        else:
            from treetop.training.finetune.following import follow

            follow(team)


def train_and_save(
    options: TrainOptions, kind: str, members: list[Settings], combine: str, console: Console
) -> None:
    """Train the members and save the model."""
    if options.resume and kind != TRANSFORMER:
        raise TreetopError(
            "--resume is for xr-transformer: xr-linear trains in one go: leave out --resume"
        )
    if options.processes > 1 and kind != TRANSFORMER:
        raise TreetopError(
            "--processes is for xr-transformer: xr-linear uses the threads of one process: leave out "
            "--processes"
        )
    store.check_target(options.output)
    encoders = encoders_for_torch(kind, members)
    if encoders:
        check_installed("text encoders", "minilm", *EXTRAS["transformer"])
    runs = run_folders(options, len(members))
    for run in runs if kind == TRANSFORMER else []:
        check_run(run, options.resume, options.overwrite)
    check_all_data(options.data)
    with reserving(options.output):
        summary, stages = train_reserved(options, kind, members, combine, encoders, runs, console)
    if options.json:
        console.json({**summary, "stages": stages})
    else:
        print_summary(options, summary, console)


def train_reserved(
    options: TrainOptions,
    kind: str,
    members: list[Settings],
    combine: str,
    encoders: set[str],
    runs: list[Path],
    console: Console,
) -> tuple[Settings, dict[str, float]]:
    """Train while nobody else writes the model; return a summary, and the seconds of each stage."""
    new_runs = [run for run in runs if not run.exists()]
    try:
        with console.progress() as report:
            for encoder in encoders:  # a wrong name is reported before any data is read
                find_encoder(encoder, report.note)
            advises = options.json or not console.quiet
            summary = train_members(options, kind, members, combine, report, advises)
        TrainingRecord(report.seconds, peak_memory()).write(options.output)
    except TreetopError:
        discard_unstarted(new_runs)
        raise
    except KeyboardInterrupt:
        if not any((run / FACTS).is_file() for run in runs):
            raise
        resume = console.command_with("--resume", without="--overwrite")
        raise InterruptedRunError(f"interrupted; resume with: {resume}") from None
    return summary, {name: round(seconds, 3) for name, seconds in report.seconds.items()}


def train_members(
    options: TrainOptions,
    kind: str,
    members: list[Settings],
    combine: str,
    report: TimedReporter,
    advises: bool = True,
) -> Settings:
    """Read the data, train and save; return a summary for the user."""
    dataset = read_all(options.data, options, report)
    split = dataset.split("train")
    check_split_has_labels(split, "learn from")
    note_unlabelled(split, report)
    note_features(split, kind, report)
    kind, members, line = dialled(options, kind, members, dataset, report)
    estimate = advise(options, kind, members, dataset, report) if advises else None
    started = time.perf_counter()

    def train(part: Dataset, held_out: bool = False) -> XRLinear | XRTransformer | Ensemble:
        models = []
        for number, settings in enumerate(members):
            if len(members) > 1:
                report.note(f"member {number + 1} of {len(members)}: {settings.get('encoder', kind)}")
            own = run_options(options, kind, part, number, held_out)
            estimator = fit(KINDS[kind](**settings), part, part.split("train"), report, **own)
            why = "; ".join(filter(None, (line, estimator.model_.competition)))
            preset = preset_name(options.preset)
            estimator.model_ = replace(estimator.model_, preset=preset, competition=why)
            if folder is not None:
                estimator = put_aside(estimator, folder / f"{number}{'-held-out' * held_out}")
            models.append(estimator)
        return models[0] if len(models) == 1 else Ensemble(models, combine)

    with temporary_folder(options.output) if len(members) > 1 else nullcontext() as folder:
        metrics = None
        if options.hold_out is not None:
            held_out = partial(train, held_out=True)
            metrics = held_out_metrics(dataset, options.hold_out, held_out, report)
        model = train(dataset)
        report.step("saving")
        model.save(options.output, metrics)
    test = dataset.splits.get("test")
    return {
        "output": str(options.output),
        "model": model.kind,
        "format": dataset.format,
        "documents": len(split),
        "labels": len(model.classes_),
        "seconds": round(time.perf_counter() - started, 3),
        "run": str(run_folder(options.output, 0).parent) if kind == TRANSFORMER else None,
        "test": test is not None and test.has_labels,
        **({} if estimate is None else {"estimate": estimate}),
        **({} if metrics is None else {"held_out": metrics}),
    }


def put_aside(estimator: XRLinear | XRTransformer, folder: Path) -> Any:
    """The same estimator with its model in a folder, not in memory: one member is trained at a time."""
    estimator.save(folder)
    return treetop.load(folder, runtime=estimator._own_runtime())


def print_summary(options: TrainOptions, summary: Settings, console: Console) -> None:
    """Say what was trained and which commands to type next."""
    model = options.output
    console.message(
        f"{model}: {summary['documents']:,} documents, {summary['labels']:,} labels, "
        f"trained in {duration(summary['seconds'])}"
    )
    if "held_out" in summary:
        about, result = summary["held_out"]["measured_on"], Evaluation(summary["held_out"])
        console.message(f"\nMetrics of {about}\n\n{result}\n")
    if summary["run"] is not None:
        console.message(
            f"{summary['run']} keeps the run: --resume with other settings reuses its stages; "
            "delete it when you no longer need it"
        )
    columns = [part for name in options.text_column for part in ("--text-column", name)]
    if options.labels_column is not None:
        columns += ["--labels-column", options.labels_column]
    data = options.data[0] if summary["test"] else "TESTDATA"
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
    empty = int((split.label_sizes() == 0).sum())
    if empty:
        report.note(f"{empty:,} documents without a label are kept as negatives")


def preset_name(preset: str | None) -> str:
    """The name of a preset, without the folders of a user's own file."""
    return "" if preset is None else Path(preset).name.removesuffix(".json")


def note_features(split: Split, kind: str, report: Reporter) -> None:
    """Note that precomputed features are used alongside the texts, or instead of them."""
    if split.texts is None or split.X is None:
        return
    use = "in place of TF-IDF features" if kind == TRANSFORMER else "instead of the texts"
    report.note(
        f"{split.X.shape[1]:,} precomputed features are used {use}: predictions require them too; "
        "--features none trains on the texts alone"
    )


def join_models(
    folders: list[Path], output: Path, combine: str, console: Console | None = None
) -> None:
    """Save several trained models as one ensemble."""
    store.check_target(output)
    for folder in folders:
        check_model(folder)
    ensemble = Ensemble([treetop.load(str(folder)) for folder in folders], combine)
    ensemble.save(output)
    (console or Console()).message(
        f"{output}: an ensemble of {len(folders)} models, scores combined by {combine}"
    )
