"""``treetop data``: inspect, convert and download data sets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from treetop.cli.completion import complete_dataset, complete_format
from treetop.cli.console import Console
from treetop.cli.options import DATA_HELP, LABELS_COLUMN_HELP, TEXT_COLUMN_HELP
from treetop.cli.usage import HelpGroup, JsonOption, command

data_app = typer.Typer(
    cls=HelpGroup,
    help="Inspect, convert and download data sets.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

DataArgument = Annotated[Path, typer.Argument(help=DATA_HELP, metavar="DATA")]
TextColumn = Annotated[
    Optional[str], typer.Option("--text-column", help=TEXT_COLUMN_HELP, metavar="COLUMN")
]
LabelsColumn = Annotated[
    Optional[str], typer.Option("--labels-column", help=LABELS_COLUMN_HELP, metavar="COLUMN")
]


@command(data_app, "inspect", examples="treetop data inspect mydata\ntreetop data inspect a.csv --json")
def inspect_command(
    data: DataArgument,
    picture: Annotated[
        Optional[Path], typer.Option(help="Also plot to this PNG or SVG file.", metavar="FILE")
    ] = None,
    text_column: TextColumn = None,
    labels_column: LabelsColumn = None,
    json: JsonOption = False,
    console: Console | None = None,
) -> None:
    """Show the detected format, sizes, lengths, duplicates and label frequencies."""
    from treetop.cli.inspection import inspect_dataset

    inspect_dataset(data, text_column, labels_column, picture, console, json)


@command(
    data_app,
    "convert",
    examples="treetop data convert mydata mydata.jsonl\ntreetop data convert mydata new --to pecos",
)
def convert_command(
    source: Annotated[Path, typer.Argument(help=DATA_HELP, metavar="DATA")],
    target: Annotated[
        Path,
        typer.Argument(
            help="A new folder, or a .csv, .tsv, .jsonl or .parquet file.", metavar="TARGET"
        ),
    ],
    form: Annotated[
        Optional[str],
        typer.Option(
            "--to",
            help="Format to write; by default from the target's name, text-lines for a folder.",
            metavar="FORMAT",
            autocompletion=complete_format,
        ),
    ] = None,
    text_column: TextColumn = None,
    labels_column: LabelsColumn = None,
    console: Console | None = None,
) -> None:
    """Write a data set in another format."""
    from treetop.cli.inspection import convert_dataset

    convert_dataset(source, target, form, text_column, labels_column, console)


@command(
    data_app, "get", examples="treetop data get eurlex-4k\ntreetop data get wiki10-31k -o downloads"
)
def get_command(
    name: Annotated[
        str,
        typer.Argument(
            help="Name of the data set (see `treetop data list`).",
            metavar="NAME",
            autocompletion=complete_dataset,
        ),
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Folder to download into.", metavar="FOLDER")
    ] = Path("data"),
    address: Annotated[
        Optional[str],
        typer.Option("--from", help="Another address; {name} is replaced by the name.", metavar="URL"),
    ] = None,
    console: Console | None = None,
) -> None:
    """Download a public data set."""
    from treetop.cli.fetch import fetch_dataset

    fetch_dataset(name, output, address, console)


@command(data_app, "formats")
def formats_command(json: JsonOption = False, console: Console | None = None) -> None:
    """List the formats that can be read and written."""
    from treetop.cli.listing import list_formats

    list_formats(console or Console(), json)


@command(data_app, "list")
def list_command(json: JsonOption = False, console: Console | None = None) -> None:
    """List the public data sets that `data get` downloads."""
    from treetop.cli.listing import list_datasets

    list_datasets(console or Console(), json)
