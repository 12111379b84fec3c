"""Tables: which columns hold the texts and the labels, and the data set that they make."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from treetop.data.cells import (
    CellReader,
    detected_separator,
    doubts_about,
    is_missing,
    parsed_cell,
    plain_name_of,
)
from treetop.data.dataset import Dataset, Split
from treetop.data.options import ReadOptions
from treetop.data.reading import Recognized
from treetop.data.records import Record, repeated_names
from treetop.errors import TreetopError

TEXT_NAMES = ("text", "content", "document", "body", "abstract", "description", "title")
LABEL_NAMES = (
    "labels",
    "label",
    "tags",
    "tag",
    "subjects",
    "subject",
    "subject_uris",
    "categories",
    "category",
)


class Table(NamedTuple):
    """Texts and unparsed cells of labels of one split, and what was detected to find them.

    `cells` and `labels_column` are None if the table has no labels; `records` holds all columns if
    they are to be kept.
    """

    texts: Sequence[str]
    cells: list[object] | None
    text_columns: tuple[str, ...]
    labels_column: str | None
    delimiter: str | None = None
    encoding: str | None = None
    records: list[Record] | None = None


def dataset_of(
    form: str,
    tables: dict[str, Table],
    options: ReadOptions,
    files: tuple[Path, ...] = (),
    warnings: Sequence[str] = (),
) -> Dataset:
    """Tables as a data set, with labels divided at the same separator in all of them."""
    first = next(iter(tables.values()))
    parsed = {
        name: [parsed_cell(cell) for cell in table.cells]
        for name, table in tables.items()
        if table.cells is not None
    }
    column, separator, doubts = first.labels_column or "labels", options.separator, list(warnings)
    if separator is None:
        strings = [cell for cells in parsed.values() for cell in cells if isinstance(cell, str)]
        separator, found = detected_separator(strings, column)
        doubts += found
    reader = CellReader(separator)
    lines = {name: labels_of_cells(reader, cells, name, column) for name, cells in parsed.items()}
    if options.separator and not reader.divided:
        doubts.append(f"--label-separator {options.label_separator!r} does not occur in {column!r}")
    if reader.padded:
        doubts.append(f"{reader.padded:,} labels in {column!r} had surrounding space: it was removed")
    if not reader.padded and len(doubts) == len(warnings):
        every = (line for part in lines.values() for line in part)
        doubts += doubts_about(every, column, options.separator is not None)
    splits = {
        name: Split(table.texts, lines.get(name), records=table.records)
        for name, table in tables.items()
    }
    reading = Recognized(
        first.text_columns,
        first.labels_column,
        first.delimiter,
        separator if reader.divided else None,
        first.encoding,
        files,
        tuple(dict.fromkeys(doubts)),
        labels_wanted=options.with_labels,
    )
    return Dataset(form, splits, label_titles=reader.titles or None, reading=reading)


def labels_of_cells(
    reader: CellReader, cells: Sequence[object], split: str, column: str
) -> list[list[str]]:
    """The labels of all cells of a split; an error says in which document it is."""
    lines = []
    for number, cell in enumerate(cells, start=1):
        try:
            lines.append(reader.labels(cell))
        except TreetopError as error:
            raise TreetopError(f"{split}, document {number}, {column!r}: {error}") from None
    return lines


def choose_columns(
    path: Path | str, names: Sequence[str], options: ReadOptions
) -> tuple[tuple[str, ...], str | None]:
    """The columns of texts and of labels; None for labels if there is no such column."""
    requested = options.text_column or (None,)
    if repeated := {one for one in options.text_column if options.text_column.count(one) > 1}:
        raise TreetopError(f"--text-column {min(repeated)!r} is given twice: give each column once")
    usual = names if options.text_column else [one for one in names if one != options.labels_column]
    texts = tuple(choose_column(path, usual, one, TEXT_NAMES, "text") for one in requested)
    if options.labels_column in texts:
        raise TreetopError(
            f"the column {options.labels_column!r} cannot be texts and labels: choose another with "
            "--text-column or --labels-column"
        )
    if not options.with_labels:
        return texts, None
    if options.labels_column is None and not set(LABEL_NAMES) & {
        name.strip().lower() for name in names
    }:
        return texts, None
    return texts, choose_column(path, names, options.labels_column, LABEL_NAMES, "labels")


def unread_columns(
    names: Sequence[str], texts: Sequence[str], labels: str | None, options: ReadOptions
) -> list[str]:
    """Notes on columns that could have been meant, too, and the options that decide."""

    def others(usual: Sequence[str]) -> str:
        found = [name for name in names if name.strip().lower() in usual]
        return " and ".join(repr(name) for name in found if name not in (*texts, labels))

    notes = []
    if not options.text_column and (unread := others(TEXT_NAMES)):
        notes.append(
            f"texts are read from {texts[0]!r} alone, not from {unread}: choose one or several with "
            "--text-column"
        )
    if labels is not None and options.labels_column is None and (unread := others(LABEL_NAMES)):
        notes.append(
            f"labels are read from {labels!r} alone, not from {unread}: choose with --labels-column"
        )
    return notes


def choose_column(
    path: Path | str, columns: Sequence[str], requested: str | None, usual: Sequence[str], role: str
) -> str:
    """The requested column, or the first whose name is usual for its role."""
    listed = ", ".join(columns)
    by_name = {column.strip().lower(): column for column in reversed(columns)}
    chosen = requested or next((by_name[name] for name in usual if name in by_name), None)
    if chosen is None:
        raise TreetopError(
            f"{path}: which column holds the {role}? Its columns are {listed}: "
            f"choose one with --{role}-column"
        )
    if chosen not in columns:
        raise TreetopError(f"{path}: no column {chosen!r}; its columns are {listed}")
    if chosen in repeated_names(columns):
        raise TreetopError(
            f"{path}: several columns are called {chosen!r}: rename them, or choose another with "
            f"--{role}-column"
        )
    return chosen


def joined_texts(
    source: Path | str, columns: Sequence[Sequence[Any]], names: Sequence[str], first: int = 1
) -> list[str]:
    """Texts of one column, or of several, joined line by line; `first` is the number of the first row.

    Of several columns, some may be empty in a row.
    """
    several = len(columns) > 1
    texts = []
    for row, values in enumerate(zip(*columns, strict=True), start=first):
        parts = [value for value in values if not (several and is_missing(value))]
        for value, name in zip(values, names, strict=True):
            if not isinstance(value, str) and not (several and is_missing(value)):
                raise TreetopError(f"{source}: row {row}: {name!r} is not a text")
        texts.append("\n".join(part for part in parts if part) if several else parts[0])
    return texts


def text_of_record(
    path: Path, number: int, record: Record, names: Sequence[str], with_numbers: bool = False
) -> str:
    """The text of a record; an error if a field is missing or is no string.

    `with_numbers`: a number is a text too, as in Excel, which makes numbers of texts such as a year.
    """
    several, parts = len(names) > 1, []
    for name in names:
        value = record.get(name)
        if several and is_missing(value):
            continue
        if with_numbers and isinstance(value, int | float):
            value = plain_name_of(value)
        if not isinstance(value, str):
            raise TreetopError(f"{path}:{number}: {name!r} is not a text")
        parts.append(value)
    return "\n".join(part for part in parts if part) if several else parts[0]
