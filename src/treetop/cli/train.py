"""What the commands train and ensemble do."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import treetop
from treetop.cli import screen
from treetop.data import Dataset, Split, open_data
from treetop.errors import TreetopError
from treetop.estimators import KINDS, Ensemble
from treetop.model import layout as store
from treetop.ranking.combining import COMBINE
from treetop.runtime.progress import reporter
from treetop.settings import presets
from treetop.settings.making import check_parameters
from treetop.settings.notation import parse_assignment
from treetop.training.run import check_run

TRAINABLE = ("xr-linear", "xr-transformer")


@dataclass(frozen=True)
class Order:
    """The options of the command train."""

    data: Path
    output: Path
    model: str | None
    preset: str | None
    assignments: list[str]
    encoder: str | None
    validation: str
    resume: bool
    overwrite: bool
    ensemble: bool
    members: list[str]
    combine: str | None
    text_column: str | None
    labels_column: str | None

    @property
    def kind(self) -> str:
        """The kind of model: as asked for, else the preset's, else XRLinear's."""
        kind = self.model or (presets.kind_of(self.preset) if self.preset else "xr-linear")
        if kind not in TRAINABLE:
            raise TreetopError(f"unknown model {kind!r}: choose one of {', '.join(TRAINABLE)}")
        return kind

    def settings(self) -> dict[str, Any]:
        """Preset, then options, then assignments."""
        chosen = presets.settings_of(self.preset, self.kind) if self.preset else {}
        if self.encoder is not None:
            if self.kind != "xr-transformer":
                raise TreetopError("--encoder is for --model xr-transformer")
            chosen["encoder"] = self.encoder
        return {**chosen, **dict(map(parse_assignment, self.assignments))}

    def variants(self) -> tuple[list[dict[str, Any]], str]:
        """Settings of each model to train, and how they are combined."""
        common, combine = self.settings(), "average"
        changes: list[dict[str, Any]] = [{}]
        if self.combine not in (None, *COMBINE):
            raise TreetopError(f"--combine {self.combine}: choose one of {', '.join(COMBINE)}")
        if self.ensemble and (self.members or self.encoder):
            raise TreetopError(
                "--ensemble takes the members from the preset: leave out --member, --encoder"
            )
        if self.ensemble:
            if self.preset is None:
                raise TreetopError(
                    "--ensemble takes the members from a preset: give --preset or --member"
                )
            changes, combine = presets.ensemble_of(self.preset)
        elif self.members:
            changes = [dict(map(parse_assignment, one.split(","))) for one in self.members]
        made = [{**common, **change} for change in changes]
        for one in made:
            check_parameters(self.kind, one)
        return made, self.combine or combine


def train_model(order: Order) -> None:
    """Train on the split `train` and save: one model, or an ensemble of several."""
    variants, combine = order.variants()
    if order.resume and order.kind != "xr-transformer":
        raise TreetopError("--resume is for xr-transformer: xr-linear trains in one go")
    store.check_target(order.output)
    if order.kind == "xr-transformer":
        for number in range(len(variants)):
            check_run(run_folder(order.output, number), order.resume, order.overwrite)
    dataset = open_data(order.data, order.text_column, order.labels_column)
    split = dataset.split("train")
    warn_of_empty(split)
    screen.compile_kernels()
    started = time.perf_counter()
    models = []
    for number, settings in enumerate(variants):
        if len(variants) > 1:
            print(f"member {number + 1} of {len(variants)}: {settings.get('encoder', order.kind)}")
        estimator = KINDS[order.kind](**settings)
        fit(estimator, dataset, split, **run_options(order, dataset, number))
        models.append(estimator)
    made = models[0] if len(models) == 1 else Ensemble(models, combine)
    made.save(order.output)
    seconds, labels = time.perf_counter() - started, len(made.classes_)
    print(f"{order.output}: {len(split):,} documents, {labels:,} labels, trained in {seconds:.1f} s")
    if order.kind == "xr-transformer":
        where = run_folder(order.output, 0).parent
        print(f"{where} keeps the run: --resume with other settings uses it; delete it when done")


def run_folder(output: Path, number: int) -> Path:
    """Where a model's run is kept while it trains, and afterwards."""
    return output.with_name(f"{output.name}.run") / f"member-{number}"


def run_options(order: Order, dataset: Dataset, number: int) -> dict[str, Any]:
    """What only XRTransformer's `fit` takes."""
    if order.kind != "xr-transformer":
        return {}
    made: dict[str, Any] = {
        "run": run_folder(order.output, number),
        "resume": order.resume,
        "overwrite": order.overwrite,
    }
    held = dataset.splits.get(order.validation)
    if held is not None and held.texts is not None and held.has_labels:
        made["validation"] = (held.texts, held.given_labels)
    elif order.validation not in ("dev", "none"):
        raise TreetopError(f"the data has no split {order.validation!r} with labels to validate on")
    return made


def fit(estimator: Any, dataset: Dataset, split: Split, **options: Any) -> None:
    """Fit on a split, whatever form its labels came in."""
    if not split.has_labels:
        raise TreetopError("the data has no labels to learn from")
    bars = reporter()
    names = {} if split.labels is not None else {"label_names": dataset.label_names}
    try:
        estimator.fit(split.documents, split.given_labels, report=bars, **names, **options)
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
