"""What the commands train and ensemble do."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import treetop
from treetop.cli import screen
from treetop.cli.options import TrainOptions
from treetop.data import Dataset, Split, open_data
from treetop.errors import TreetopError
from treetop.estimators import KINDS, Ensemble, XRLinear, XRTransformer
from treetop.model import layout as store
from treetop.ranking.combining import COMBINE
from treetop.runtime.progress import reporter
from treetop.settings import presets
from treetop.settings.making import check_parameters
from treetop.settings.names import renamed
from treetop.settings.notation import parse_assignment
from treetop.training.run import check_run

TRAINABLE = ("xr-linear", "xr-transformer")


def model_kind(options: TrainOptions) -> str:
    """The kind of model: as asked for, else the preset's, else XRLinear's."""
    kind = options.model or (presets.kind_of(options.preset) if options.preset else "xr-linear")
    if kind not in TRAINABLE:
        raise TreetopError(f"unknown model {kind!r}: choose one of {', '.join(TRAINABLE)}")
    return kind


def model_settings(options: TrainOptions, kind: str) -> dict[str, Any]:
    """Preset, then options, then assignments."""
    chosen = presets.settings_of(options.preset, kind) if options.preset else {}
    if options.encoder is not None:
        if kind != "xr-transformer":
            raise TreetopError("--encoder is for --model xr-transformer")
        chosen["encoder"] = options.encoder
    return {**chosen, **renamed(dict(map(parse_assignment, options.assignments)))}


def variants(options: TrainOptions, kind: str) -> tuple[list[dict[str, Any]], str]:
    """Settings of each model to train, and how they are combined."""
    common, combine = model_settings(options, kind), "average"
    changes: list[dict[str, Any]] = [{}]
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
        changes = [renamed(dict(map(parse_assignment, one.split(",")))) for one in options.member]
    made = [{**common, **change} for change in changes]
    for one in made:
        check_parameters(kind, one)
    return made, options.combine or combine


def train_model(options: TrainOptions) -> None:
    """Train on the split `train` and save: one model, or an ensemble of several."""
    kind = model_kind(options)
    members, combine = variants(options, kind)
    if options.resume and kind != "xr-transformer":
        raise TreetopError("--resume is for xr-transformer: xr-linear trains in one go")
    store.check_target(options.output)
    if kind == "xr-transformer":
        for number in range(len(members)):
            check_run(run_folder(options.output, number), options.resume, options.overwrite)
    dataset = open_data(options.data, options.text_column, options.labels_column)
    split = dataset.split("train")
    warn_of_empty(split)
    screen.compile_kernels()
    started = time.perf_counter()
    models = []
    for number, settings in enumerate(members):
        if len(members) > 1:
            print(f"member {number + 1} of {len(members)}: {settings.get('encoder', kind)}")
        estimator = KINDS[kind](**settings)
        fit(estimator, dataset, split, **run_options(options, kind, dataset, number))
        models.append(estimator)
    made = models[0] if len(models) == 1 else Ensemble(models, combine)
    made.save(options.output)
    seconds, labels = time.perf_counter() - started, len(made.classes_)
    print(f"{options.output}: {len(split):,} documents, {labels:,} labels, trained in {seconds:.1f} s")
    if kind == "xr-transformer":
        where = run_folder(options.output, 0).parent
        print(f"{where} keeps the run: --resume with other settings uses it; delete it when done")


def run_folder(output: Path, number: int) -> Path:
    """Where a model's run is kept while it trains, and afterwards."""
    return output.with_name(f"{output.name}.run") / f"member-{number}"


def run_options(options: TrainOptions, kind: str, dataset: Dataset, number: int) -> dict[str, Any]:
    """What only XRTransformer's `fit` takes."""
    if kind != "xr-transformer":
        return {}
    made: dict[str, Any] = {
        "run": run_folder(options.output, number),
        "resume": options.resume,
        "overwrite": options.overwrite,
    }
    held = dataset.splits.get(options.validation)
    if held is not None and held.texts is not None and held.has_labels:
        made["validation"] = (held.texts, held.given_labels)
    elif options.validation not in ("dev", "none"):
        raise TreetopError(f"the data has no split {options.validation!r} with labels to validate on")
    return made


def fit(estimator: XRLinear | XRTransformer, dataset: Dataset, split: Split, **options: Any) -> None:
    """Fit on a split, whatever form its labels came in."""
    if not split.has_labels:
        raise TreetopError("the data has no labels to learn from")
    bars = reporter()
    names = None if split.labels is not None else dataset.label_names
    try:
        estimator.fit(split.documents, split.given_labels, label_names=names, report=bars, **options)
    finally:
        bars.close()


def warn_of_empty(split: Split) -> None:
    """Say how many documents have no label: they are kept as negatives."""
    lines = split.named_labels(None) if split.has_labels else []
    empty = sum(not line for line in lines)
    if empty:
        print(f"treetop: {empty:,} documents without a label are kept as negatives", file=sys.stderr)


def join_models(folders: list[Path], output: Path, combine: str) -> None:
    """Save several trained models as one."""
    store.check_target(output)
    made = Ensemble([treetop.load(str(folder)) for folder in folders], combine)
    made.save(output)
    print(f"{output}: {len(folders)} models, combined by {combine}")
