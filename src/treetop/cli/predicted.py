"""Predictions as lines: JSONL, CSV with the columns of the input, or names and scores alone."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from treetop.data.files import plain_name
from treetop.errors import TreetopError

FORMATS = ("jsonl", "csv", "tsv")
OTHER_TABLES = (".xlsx", ".xls", ".ods", ".parquet", ".npz")
# What separates the labels in a field of CSV: the first that no label contains.
SEPARATORS = (";", "|", " / ")
LABELS, PREDICTED = "labels", "predicted_"
# What stands beside a label, and the column with those of all labels.
SCORE, PROBABILITY = "score", "probability"
COLUMNS = {SCORE: "scores", PROBABILITY: "probabilities"}

Labelled = Sequence[tuple[Any, float]]
Columns = Mapping[str, Any]
# Makes the line of a document from the columns it came with and its labels.
Line = Callable[[Columns, Labelled], str]


def output_format(output: Path | None, asked: str | None) -> str:
    """The format asked for, else the one that the name of the file says, else JSONL."""
    if output is not None and plain_name(output).endswith(OTHER_TABLES):
        raise TreetopError(
            f"{output}: predictions are written as {', '.join(FORMATS)}: choose another name"
        )
    if asked is not None or output is None:
        return asked or FORMATS[0]
    return "csv" if plain_name(output).endswith((".csv", ".tsv")) else FORMATS[0]


def delimiter_for(output: Path | None, given: str | None) -> str:
    """The delimiter of the columns: that of the input; a tab in a file called .tsv."""
    if output is not None and plain_name(output).endswith(".tsv"):
        return "\t"
    return given or ","


def column_names_of(records: Sequence[Columns] | None) -> list[str]:
    """Names of all columns, in the order in which they occur."""
    return list(dict.fromkeys(name for record in records or () for name in record))


def added_column(name: str, columns: Iterable[str]) -> str:
    """The name of a column of predictions: another one if the input has a column of this name."""
    taken = set(columns)
    while name in taken:
        name = PREDICTED + name
    return name


def json_line(columns: Sequence[str], value: str = SCORE) -> Line:
    """One JSON object per document: its columns, and the labels with their scores or probabilities."""
    added = added_column(LABELS, columns)

    def line(record: Columns, prediction: Labelled) -> str:
        labels = [{"label": name, value: round(score, 6)} for name, score in prediction]
        return as_json({**record, added: labels}) + "\n"

    return line


def as_json(record: object) -> str:
    """JSON of values that a table may hold: dates as strings, NaN as null."""
    try:
        return json.dumps(record, ensure_ascii=False, allow_nan=False, default=str)
    except ValueError:
        return json.dumps(without_nan(record), ensure_ascii=False, default=str)


def without_nan(value: object) -> Any:
    """A value with None for floats that JSON has no notation for."""
    if isinstance(value, float) and value - value != 0:
        return None
    if isinstance(value, Mapping):
        return {str(key): without_nan(inner) for key, inner in value.items()}
    return [without_nan(inner) for inner in value] if isinstance(value, list | tuple) else value


def csv_line(
    columns: Sequence[str], delimiter: str, classes: Iterable[object], value: str = SCORE
) -> tuple[str, Line]:
    """The header of a CSV file, and what makes its lines: labels and scores are two columns more."""
    names = list(map(str, classes))
    usable = [mark for mark in SEPARATORS if mark != delimiter]
    free = (mark for mark in usable if not any(mark in name for name in names))
    separator = next(free, None)
    added = [added_column(name, columns) for name in (LABELS, COLUMNS[value])]

    def row(cells: Iterable[Any]) -> str:
        buffer = io.StringIO()
        csv.writer(buffer, delimiter=delimiter, lineterminator="\n").writerow(cells)
        return buffer.getvalue()

    def line(record: Columns, prediction: Labelled) -> str:
        labels = [str(name) for name, _ in prediction]
        scores = [f"{score:.6g}" for _, score in prediction]
        # Every label contains a separator somewhere: lists are unambiguous.
        joined = json.dumps(labels, ensure_ascii=False) if separator is None else separator.join(labels)
        cells = [as_cell(record.get(name)) for name in columns]
        return row([*cells, joined, (separator or usable[0]).join(scores)])

    return row([*columns, *added]), line


def as_cell(value: object) -> Any:
    """A value as the cell of a CSV file: lists and objects as JSON."""
    if value is None:
        return ""
    return as_json(value) if isinstance(value, list | tuple | Mapping) else value


def tab_line(record: Columns, prediction: Labelled) -> str:
    """Names and scores separated by tabs, without anything of the input."""
    return "\t".join(f"{name}\t{score:.6g}" for name, score in prediction) + "\n"
