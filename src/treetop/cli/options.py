"""The options of commands as dataclasses: each documented field becomes one option (`typer_options`).

Nothing here imports what a command needs: ``treetop --help`` reads this module.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from pathlib import Path

from treetop.cli.usage import JSON_HELP
from treetop.data.options import ReadOptions
from treetop.fields import check_fields, documented
from treetop.settings.notation import parse_time

OBJECTIVES = ("nDCG@5", "P@1", "PSP@5", "macro-F1")
QUALITY_NAMES = ("quick", "balanced", "best")
DATA_HELP = "File or folder in any supported format (see `treetop data formats`)."
MODEL_HELP = "Model folder, as written by `treetop train`."


@dataclass(frozen=True)
class TrainOptions(ReadOptions):
    """Options of `treetop train`."""

    data: tuple[Path, ...] = documented(MISSING, f"{DATA_HELP[:-1]}; several are combined.", flags=())
    output: Path = documented(
        MISSING, "Folder to write the model to.", flags=("-o", "--output"), metavar="MODEL"
    )
    model: str | None = documented(
        None,
        "Kind of model; by default the preset's, else xr-linear.",
        section="Model",
        metavar="xr-linear|xr-transformer",
    )
    preset: str | None = documented(
        None,
        "Start from named settings (see `treetop presets`) or a .json file.",
        section="Model",
    )
    quality: str | None = documented(
        None,
        "What to spend: quick trains one model without competition, best several with more features. "
        "Settings of a quality are replaced by --set and --preset.",
        section="Model",
        choices=tuple(QUALITY_NAMES),
    )
    time: str | None = documented(
        None,
        "Time for training, such as 10m: the highest quality that is estimated to fit is trained.",
        section="Model",
        metavar="TIME",
        parse=parse_time,
    )
    optimize: str | None = documented(
        None,
        "Metric for which the features are chosen: a competition on a part of the training data, or on "
        "the validation split, compares them. PSP@5 and macro-F1 favor rare labels.",
        section="Model",
        flags=("--optimize", "--optimise"),
        choices=OBJECTIVES,
    )
    assignments: tuple[str, ...] = documented(
        (),
        "Change a setting (see `treetop settings`).",
        section="Model",
        flags=("--set",),
        metavar="NAME=VALUE",
    )
    encoder: str | None = documented(
        None,
        "Text encoder of xr-transformer: minilm, a name on the Hugging Face Hub, or a folder.",
        section="Model",
    )
    hold_out: float | None = documented(
        None,
        "Also train without this share of the documents, such as 0.1, and evaluate on them; the model "
        "that is saved is trained on all.",
        section="Data",
        metavar="SHARE",
        above=0,
        below=1,
    )
    validation: str = documented(
        "dev",
        "Split on which the features, and the best weights of xr-transformer, are chosen; none to use "
        "a part of the training documents.",
        section="Data",
        metavar="SPLIT",
    )
    processes: int = documented(
        1,
        "Number of processes on this machine that fine-tune and encode together, such as one per GPU. "
        "torchrun … -m treetop train starts them on several machines.",
        section="Run",
        at_least=1,
    )
    cluster: str | None = documented(
        None,
        "Train on a Ray cluster: its address, auto for the one of this machine, or local to start "
        "Ray here.",
        metavar="auto|ADDRESS|local",
        section="Run",
    )
    memory: str | None = documented(
        None,
        "Maximum memory, such as 8GB: training uses fewer threads if necessary, and stops with an "
        "error if it cannot keep to it.",
        section="Run",
        metavar="SIZE",
    )
    resume: bool = documented(False, "Resume an interrupted training.", section="Run")
    overwrite: bool = documented(
        False, "Discard the earlier run of this model and start again.", section="Run"
    )
    ensemble: bool = documented(
        False, "Train every member of the ensemble that the preset describes.", section="Ensemble"
    )
    member: tuple[str, ...] = documented(
        (),
        "Add a member with these settings to an ensemble.",
        section="Ensemble",
        metavar="NAME=VALUE,…",
    )
    combine: str | None = documented(
        None,
        "How to combine the scores of the members, raw scores with the prefix raw-; by default as the "
        "preset says, else average.",
        section="Ensemble",
        metavar="average|rank|linear-rank|sigmoid|softmax",
    )
    json: bool = documented(False, JSON_HELP)

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class TuneOptions(ReadOptions):
    """Options of `treetop tune`."""

    data: Path = documented(MISSING, DATA_HELP, flags=())
    output: Path = documented(
        MISSING, "Preset to write, for `train --preset`.", flags=("-o", "--output"), metavar="FILE.json"
    )
    time: str = documented(
        "10m", "Time to search, such as 30m or 2h.", metavar="TIME", parse=parse_time
    )
    trials: int | None = documented(None, "Stop after so many trials.", at_least=1)
    jobs: int = documented(
        1, "Number of processes that search together; they share the cores.", at_least=1
    )
    study: Path | None = documented(
        None,
        "SQLite file of the search; an existing one is resumed. By default, the name of the preset "
        "with .db.",
        metavar="FILE.db",
    )
    model: str = documented(
        "xr-linear", "Kind of model.", section="Model", choices=("xr-linear", "xr-transformer")
    )
    optimize: str | None = documented(
        None,
        "Metric to maximize; by default nDCG@5.",
        section="Model",
        flags=("--optimize", "--optimise"),
        choices=OBJECTIVES,
    )
    assignments: tuple[str, ...] = documented(
        (),
        "Keep a setting at this value instead of searching it.",
        section="Model",
        flags=("--set",),
        metavar="NAME=VALUE",
    )
    encoder: str | None = documented(
        None,
        "Text encoder of xr-transformer, which stays frozen: minilm, a name on the Hugging Face Hub, "
        "or a folder.",
        section="Model",
    )
    json: bool = documented(False, JSON_HELP)

    def __post_init__(self) -> None:
        check_fields(self)


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
class CalibrateOptions(ReadOptions):
    """Options of `treetop calibrate`."""

    model: Path = documented(MISSING, MODEL_HELP, flags=())
    data: Path = documented(MISSING, DATA_HELP, flags=())
    output: Path | None = documented(
        None,
        "Folder to write the calibrated model to, instead of replacing it.",
        flags=("-o", "--output"),
        metavar="MODEL",
    )
    split: str | None = documented(
        None, "Split of the data to calibrate on; test by default, or the only one."
    )

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


@dataclass(frozen=True)
class InspectOptions(ReadOptions):
    """Options of `treetop data inspect`."""

    data: Path = documented(MISSING, DATA_HELP, flags=())
    picture: Path | None = documented(None, "Also plot to this PNG or SVG file.", metavar="FILE")
    json: bool = documented(False, JSON_HELP)

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class ConvertOptions(ReadOptions):
    """Options of `treetop data convert`."""

    source: Path = documented(MISSING, DATA_HELP, flags=(), metavar="DATA")
    target: Path = documented(
        MISSING, "A new folder, or a .csv, .tsv, .jsonl or .parquet file.", flags=()
    )
    form: str | None = documented(
        None,
        "Format to write; by default from the target's name, text-lines for a folder.",
        flags=("--to",),
        metavar="FORMAT",
    )

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class SplitOptions(ReadOptions):
    """Options of `treetop data split`."""

    source: Path = documented(MISSING, DATA_HELP, flags=(), metavar="DATA")
    target: Path = documented(MISSING, "A new folder.", flags=())
    test: float = documented(
        0.1, "Share of the documents for testing.", metavar="SHARE", at_least=0, below=1
    )
    dev: float = documented(
        0.0, "Share of the documents for validation.", metavar="SHARE", at_least=0, below=1
    )
    seed: int = documented(0, "Seed of the random split; the same seed gives the same split.")
    group_by: str | None = documented(
        None,
        "Column of a table; documents with the same value in it stay together.",
        metavar="COLUMN",
    )
    stratify: bool = documented(
        False, "Divide the documents of each label in the same proportions, as far as possible."
    )
    form: str | None = documented(
        None,
        "Format to write; by default tables keep their columns, others become text-lines or pecos.",
        flags=("--to",),
        metavar="FORMAT",
    )

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class DemoOptions:
    """Options of `treetop demo`."""

    linear: bool = documented(False, "Train XRLinear only, which requires no torch.")
    fine_tune: bool | None = documented(
        None,
        "Also fine-tune the encoder; by default only on a GPU.",
        flags=("--fine-tune/--no-fine-tune",),
    )
    output: Path | None = documented(None, "Save the best model here too.", flags=("-o", "--output"))
    serve: bool = documented(
        False, "Open the web page on the best model; a model kept from an earlier run is reused."
    )
    port: int = documented(8000, "Port of the web page.", at_least=0, below=65536)
    export: Path | None = documented(
        None, "Write the records to this new folder, a CSV file per split, and stop."
    )
    json: bool = documented(False, JSON_HELP)

    def __post_init__(self) -> None:
        check_fields(self)
