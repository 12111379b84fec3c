"""``treetop data``: inspect, convert and download data sets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from treetop.cli.completion import complete_dataset
from treetop.cli.console import Console
from treetop.cli.data_options import ConvertOptions, InspectOptions, SplitOptions
from treetop.cli.typer_options import options_from
from treetop.cli.usage import HelpGroup, JsonOption, command

data_app = typer.Typer(
    cls=HelpGroup,
    help="Inspect, convert, split and download data sets.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@command(data_app, "inspect", examples="treetop data inspect mydata\ntreetop data inspect a.csv --json")
@options_from(InspectOptions)
def inspect_command(options: InspectOptions, console: Console | None = None) -> None:
    """Show the detected format, sizes, lengths, duplicates and label frequencies."""
    from treetop.cli.inspection import inspect_dataset

    inspect_dataset(options, console)


@command(
    data_app,
    "convert",
    examples="treetop data convert mydata mydata.jsonl\ntreetop data convert mydata new --to pecos",
)
@options_from(ConvertOptions)
def convert_command(options: ConvertOptions, console: Console | None = None) -> None:
    """Write a data set in another format."""
    from treetop.cli.inspection import convert_dataset

    convert_dataset(options, console)


@command(
    data_app,
    "split",
    examples="treetop data split a.csv splits\n"
    "treetop data split a.csv splits --test 0.1 --dev 0.1 --group-by journal --seed 1",
)
@options_from(SplitOptions)
def split_command(options: SplitOptions, console: Console | None = None) -> None:
    """Divide documents into train, dev and test, the same way each time."""
    from treetop.cli.splitting import split_dataset

    split_dataset(options, console)


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
