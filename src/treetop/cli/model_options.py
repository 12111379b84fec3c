"""The options of commands that use a model: predict, explain, evaluate, compare, report."""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from pathlib import Path

from treetop.cli.usage import DATA_HELP, JSON_HELP, MODEL_HELP
from treetop.data.options import ReadOptions
from treetop.fields import check_fields, documented


@dataclass(frozen=True)
class PredictOptions(ReadOptions):
    """Options of `treetop predict`."""

    model: Path = documented(MISSING, MODEL_HELP, flags=())
    file: str = documented(
        "-",
        "Texts, one per line, or data in any supported format; - reads lines from standard input.",
        flags=(),
    )
    k: int | None = documented(
        None,
        "Number of labels per text, 5 by default; with --precision or --choose, the maximum.",
        flags=("-k",),
        at_least=1,
    )
    threshold: float | None = documented(
        None, "Leave out labels with a lower probability, or score if not calibrated, than this."
    )
    precision: float | None = documented(
        None, "Choose the labels that are right in this share of the cases, such as 0.95."
    )
    choose: str | None = documented(
        None,
        "Choose the labels with the best F1 on held-out documents.",
        choices=("micro-F1", "macro-F1", "macro-F1-per-label"),
    )
    output: Path | None = documented(
        None, "File to write to instead of standard output.", flags=("-o", "--output"), metavar="FILE"
    )
    format: str | None = documented(
        None,
        "Format of the predictions: jsonl and csv keep the columns of a table; tsv is names and scores "
        "alone. By default csv for a file called .csv or .tsv, else jsonl.",
        choices=("jsonl", "csv", "tsv"),
    )
    split: str | None = documented(
        None,
        "Split of a folder; test by default, or the only one.",
        section="Data",
    )
    beam: int | None = documented(
        None, "Nodes followed per level: more is slower and more accurate.", at_least=1
    )
    cluster: str | None = documented(
        None,
        "Predict on a Ray cluster: its address, auto for the one of this machine, or local to start "
        "Ray here.",
        metavar="auto|ADDRESS|local",
    )

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class ExplainOptions:
    """Options of `treetop explain`."""

    model: Path = documented(MISSING, MODEL_HELP, flags=())
    text: str = documented("-", "The text; - reads it from standard input.", flags=())
    label: tuple[str, ...] = documented((), "Label to explain; the best labels by default.")
    k: int = documented(3, "Number of best labels to explain.", flags=("-k",), at_least=1)
    words: int = documented(15, "Number of words listed per label.", at_least=0)
    features: Path | None = documented(
        None, "A .npz file with the precomputed features of the text: one row.", metavar="FILE"
    )
    json: bool = documented(False, JSON_HELP)

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class EvaluateOptions(ReadOptions):
    """Options of `treetop evaluate`."""

    model: Path = documented(MISSING, MODEL_HELP, flags=())
    data: Path = documented(MISSING, DATA_HELP, flags=())
    split: str | None = documented(
        None, "Split of the data to evaluate on; test by default, or the only one."
    )
    json: bool = documented(False, JSON_HELP)
    propensity: str = documented(
        "auto",
        "Constants A and B of the propensity-scored metrics: by kind of data, or by the name of a data "
        "set of the literature or of a preset for it, such as amazon-670k. By default (auto), by the "
        "name of the data, or of the preset that the model was trained with.",
        metavar="auto|default|wikipedia|amazon|NAME",
    )
    also: tuple[str, ...] = documented(
        (), "Also compute a metric that is computed on request only: PSP_raw.", metavar="METRIC"
    )
    threshold: float | None = documented(None, "Also report F1 of all labels that score at least this.")
    cluster: str | None = documented(
        None,
        "Predict on a Ray cluster: its address, auto for the one of this machine, or local to start "
        "Ray here.",
        metavar="auto|ADDRESS|local",
    )
    keep: bool = documented(False, "Save the metrics in the model's config.json and card.")
    allow_training_data: bool = documented(
        False, "Evaluate on documents that the model was trained on too."
    )

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class CompareOptions(ReadOptions):
    """Options of `treetop compare`."""

    a: Path = documented(MISSING, MODEL_HELP, flags=(), metavar="A")
    b: Path = documented(MISSING, "Another model folder.", flags=(), metavar="B")
    data: Path = documented(MISSING, DATA_HELP, flags=())
    split: str | None = documented(
        None, "Split of the data to compare on; test by default, or the only one."
    )
    examples: int = documented(5, "Documents shown that only one of the models gets right.", at_least=0)
    samples: int = documented(1000, "How often the bootstrap draws the documents.", at_least=100)
    seed: int = documented(0, "Seed of the bootstrap.", at_least=0)
    json: bool = documented(False, JSON_HELP)
    propensity: str = documented(
        "auto", "As for `treetop evaluate`.", metavar="auto|default|wikipedia|amazon|NAME"
    )
    allow_training_data: bool = documented(
        False, "Compare on documents that the models were trained on too."
    )

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class ReportOptions(ReadOptions):
    """Options of `treetop report`."""

    paths: tuple[Path, ...] = documented(
        MISSING,
        "Model folders and, last, data with labels to evaluate them on; without, a report says what is "
        "known of the models.",
        flags=(),
        metavar="MODEL",
    )
    data: Path | None = documented(
        None, "Data with labels, instead of the last argument.", metavar="DATA"
    )
    output: Path = documented(
        Path("report.html"), "HTML file to write.", flags=("-o", "--output"), metavar="FILE"
    )
    split: str | None = documented(
        None, "Split of the data to evaluate on; test by default, or the only one."
    )
    propensity: str = documented(
        "auto", "As for `treetop evaluate`.", metavar="auto|default|wikipedia|amazon|NAME"
    )
    allow_training_data: bool = documented(
        False, "Evaluate on documents that the models were trained on too."
    )

    def __post_init__(self) -> None:
        check_fields(self)
