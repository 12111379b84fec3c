"""What the command ``report`` does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import treetop
from treetop.base import FittedMixin
from treetop.cli.console import Console
from treetop.cli.evaluate import Judged, check_metrics, judge, predict_in_chunks
from treetop.cli.model_options import ReportOptions
from treetop.cli.paths import check_data, check_model, is_model, read_data
from treetop.errors import TreetopError
from treetop.evaluation.result import Evaluation
from treetop.model import layout
from treetop.model.training_record import TrainingRecord
from treetop.report.subject import Subject
from treetop.report.writing import html_report
from treetop.runtime.files import replacing_file
from treetop.runtime.progress import Reporter
from treetop.runtime.tables import readable_bytes

REPORT_RANKS = (1, 3, 5, 10)
# Labels per document whose scores are looked at for thresholds.
SCORED = 50
CALIBRATED_RANKS = 5


@dataclass(frozen=True)
class ReportData:
    """The data of a report, as `judge` reads its options."""

    data: Path
    split: str | None
    propensity: str
    allow_training_data: bool


def report_models(options: ReportOptions, console: Console | None = None) -> None:
    """Write a report about models as an HTML file."""
    console = console or Console()
    check_metrics(options.propensity)
    folders, data = models_and_data(options.paths, options.data)
    check_output(options.output)
    with console.progress() as report:
        dataset = None if data is None else read_data(data, options, report)
        about, subjects = "", []
        for folder, name in zip(folders, names_of_models(folders), strict=True):
            report.step(f"loading {name}")
            estimator = treetop.load(str(folder))
            judged = None
            if dataset is not None and data is not None:
                chosen = ReportData(
                    data, options.split, options.propensity, options.allow_training_data
                )
                judged = judge(estimator, dataset, chosen, report, k=REPORT_RANKS, depth=SCORED)
                about = f"Measured on {data.name}, {judged.name}: {len(judged.split):,} documents."
            subjects.append(subject_of(estimator, folder, name, judged, report))
        report.step("writing the report")
        page = html_report(subjects, about)
        with replacing_file(options.output) as file:
            file.write(page)
    size = readable_bytes(len(page.encode()))
    console.message(f"{options.output}: report about {', '.join(one.name for one in subjects)}, {size}")


def models_and_data(paths: Sequence[Path], data: Path | None) -> tuple[Sequence[Path], Path | None]:
    """Divide the arguments into model folders and data; raise if they are neither."""
    if data is None and len(paths) > 1 and not is_model(paths[-1]):
        paths, data = paths[:-1], paths[-1]
    for path in paths:
        check_model(path)
    if data is not None:
        check_data(data)
    return paths, data


def check_output(path: Path) -> None:
    """Raise unless a file can be written to this path."""
    if path.is_dir():
        raise TreetopError(f"{path}: is a folder: give the name of an HTML file with -o")
    if not path.parent.is_dir():
        raise TreetopError(f"{path}: {path.parent} does not exist: create it or choose another folder")


def names_of_models(folders: Sequence[Path]) -> list[str]:
    """The names of folders, with their parents if two have the same name."""
    names = [folder.resolve().name for folder in folders]
    return names if len(set(names)) == len(names) else [str(folder) for folder in folders]


def subject_of(
    estimator: FittedMixin, folder: Path, name: str, judged: Judged | None, report: Reporter
) -> Subject:
    """What a report says about a model: its results here, else those saved in its folder."""
    model = estimator.model_
    probabilities = None
    if judged is not None and model.calibrated and judged.split.excluded is None:
        probabilities = predict_in_chunks(
            estimator, judged.split, CALIBRATED_RANKS, report, calibrated=True
        )
    return Subject(
        name,
        model,
        saved_result(folder) if judged is None else judged.result,
        probabilities,
        TrainingRecord.read(folder),
        sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()),
    )


def saved_result(folder: Path) -> Evaluation | None:
    """The metrics that `treetop evaluate --keep` or `train --hold-out` saved with a model."""
    saved = layout.read_config(folder, verify=False).get("metrics", {})
    known = {"documents", "labels", "k", "by_frequency"} <= set(saved)
    return Evaluation(saved) if known else None
