"""``treetop data``: look at data, convert it, fetch it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

data_app = typer.Typer(
    help="Look at data, convert it, fetch it.", no_args_is_help=True, rich_markup_mode=None
)

DataArgument = Annotated[Path, typer.Argument(help="A folder or file in any supported format.")]
TextColumn = Annotated[Optional[str], typer.Option("--text-column", help="Tables: texts.")]
LabelsColumn = Annotated[Optional[str], typer.Option("--labels-column", help="Tables: labels.")]


@data_app.command("inspect")
def inspect_command(
    data: DataArgument,
    picture: Annotated[Optional[Path], typer.Option(help="Draw it, to this PNG or SVG.")] = None,
    text_column: TextColumn = None,
    labels_column: LabelsColumn = None,
) -> None:
    """What is in a file or folder."""
    from treetop.cli.inspection import inspect_dataset

    inspect_dataset(data, text_column, labels_column, picture)


@data_app.command("convert")
def convert_command(
    source: DataArgument,
    target: Annotated[Path, typer.Argument(help="A new folder, or a .csv, .tsv, .jsonl or .parquet.")],
    form: Annotated[
        Optional[str],
        typer.Option("--to", help="Format of a folder: text-lines, jsonl, pecos, lf, xmlrepo, …"),
    ] = None,
    text_column: TextColumn = None,
    labels_column: LabelsColumn = None,
) -> None:
    """Write data in another format."""
    from treetop.cli.inspection import convert_dataset

    convert_dataset(source, target, form, text_column, labels_column)


@data_app.command("get")
def get_command(
    name: Annotated[str, typer.Argument(help="eurlex-4k, wiki10-31k, amazoncat-13k, …")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder to put it in.")] = Path("data"),
    address: Annotated[
        Optional[str], typer.Option("--from", help="Another address; {name} is replaced.")
    ] = None,
) -> None:
    """Download a public data set."""
    from treetop.cli.fetch import fetch_dataset

    fetch_dataset(name, output, address)
