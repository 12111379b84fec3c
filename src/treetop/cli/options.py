"""The options of commands that train: each documented field becomes one option (see `typer_options`).

Nothing here imports what a command needs: ``treetop --help`` reads this module. For commands that use a
model, see `model_options`; for `treetop data`, see `data_options`.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from pathlib import Path

from treetop.cli.usage import DATA_HELP, JSON_HELP, MODEL_HELP
from treetop.data.options import ReadOptions
from treetop.fields import check_fields, documented
from treetop.settings.notation import parse_time

OBJECTIVES = ("nDCG@5", "P@1", "PSP@5", "macro-F1")
QUALITY_NAMES = ("quick", "balanced", "best")


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
        "Text encoder of xr-transformer: minilm, a name on the Hugging Face Hub, or a folder. With "
        "--quality best or --time and without --model, it is used if it pays.",
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
