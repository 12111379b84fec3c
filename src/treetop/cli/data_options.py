"""The options of `treetop data`."""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from pathlib import Path

from treetop.cli.usage import DATA_HELP, JSON_HELP
from treetop.data.options import ReadOptions
from treetop.fields import check_fields, documented


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
