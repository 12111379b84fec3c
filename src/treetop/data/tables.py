"""CSV, TSV and JSONL files with a column of texts and a column of labels."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from treetop.data.dataset import Columns, Dataset, Split
from treetop.data.files import lines_of, open_bytes, plain_name, split_files, write_lines
from treetop.data.holding import texts_of
from treetop.data.pairs import first_line
from treetop.errors import TreetopError

NAME = "table"
ABOUT = "CSV, TSV or JSONL with a column of texts and a column of labels"

TEXT_NAMES = ("text", "content", "document", "body", "abstract", "description", "title")
LABEL_NAMES = ("labels", "label", "tags", "tag", "subjects", "subject", "categories", "category")
SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson")
DELIMITERS = (",", ";", "\t", "|")  # of columns, in CSV files
SEPARATORS = ("\t", ";", "|", ",")  # of labels within a field

Record = dict[str, object]  # values by column


class Table(NamedTuple):
    """Texts and undivided labels of one split, and what was detected to find them.

    `labels` and `label_column` are None if the table has no labels. `delimiter` is None unless the
    table is a CSV file.
    """

    texts: list[str]
    labels: list[object] | None
    text_column: str
    label_column: str | None
    delimiter: str | None = None


def table_files(path: Path) -> dict[str, Path]:
    """Files by split: ``train.csv`` and so on of a folder, or a single file as ``train``."""
    return split_files(
        path,
        lambda name: [name + suffix for suffix in SUFFIXES],
        lambda file: plain_name(file).endswith(SUFFIXES),
    )


def matches(path: Path) -> bool:
    """Whether a file, or the files of a folder, are of this format."""
    return bool(table_files(path))


def read(path: Path, columns: Columns) -> Dataset:
    """Read a file as the split ``train``, or all splits of a folder."""
    files = table_files(path)
    kind = plain_name(next(iter(files.values()))).rsplit(".", 1)[1]
    return dataset_of(kind, {name: read_table(file, columns) for name, file in files.items()})


def dataset_of(form: str, tables: dict[str, Table]) -> Dataset:
    """Tables as a data set, with labels divided at the same separator in all of them."""
    fields = [value for table in tables.values() for value in table.labels or ()]
    separator = guess_separator(fields)
    splits = {}
    for name, table in tables.items():
        labels = table.labels
        lines = None if labels is None else [field_labels(value, separator) for value in labels]
        splits[name] = Split(table.texts, lines)
    first = next(iter(tables.values()))
    divided = any(isinstance(value, str) and separator in value for value in fields)
    return Dataset(form, splits, detail=detail_of(first, separator if divided else None))


def detail_of(table: Table, separator: str | None) -> str:
    """The columns and separators that were detected, as users should be told."""
    parts = [f"texts in {table.text_column!r}"]
    if table.label_column is None:
        parts.append("no column of labels")
    elif separator is None:
        parts.append(f"labels in {table.label_column!r}")
    else:
        parts.append(f"labels in {table.label_column!r} separated by {separator_name(separator)}")
    if table.delimiter is not None:
        parts.append(f"columns separated by {separator_name(table.delimiter)}")
    return ", ".join(parts)


def separator_name(separator: str) -> str:
    """A separator as people write it."""
    return "tabs" if separator == "\t" else repr(separator)


def read_table(path: Path, columns: Columns) -> Table:
    """Read the texts and the undivided labels of one file."""
    delimiter = None if is_json(path) else delimiter_of(path, columns)
    records = list(json_records(path) if delimiter is None else csv_records(path, delimiter))
    if not records:
        raise TreetopError(f"{path}: no records: add at least one")
    names = list(dict.fromkeys(name for _, record in records for name in record))
    text, labels = choose_columns(path, names, columns)
    texts = [text_in(path, number, record, text) for number, record in records]
    fields = None if labels is None else [record.get(labels) for _, record in records]
    return Table(texts, fields, text, labels, delimiter)


def is_json(path: Path) -> bool:
    """Whether a file has one JSON object per line, by its name."""
    return plain_name(path).endswith((".jsonl", ".ndjson", ".json"))


def delimiter_of(path: Path, columns: Columns) -> str:
    """The delimiter that finds the most known column names in the header, else the most columns."""
    if plain_name(path).endswith(".tsv"):
        return "\t"
    known = {name.lower() for name in (*columns, *TEXT_NAMES, *LABEL_NAMES) if name}
    header = first_line(path)

    def fit(delimiter: str) -> tuple[int, int]:
        names = next(csv.reader([header], delimiter=delimiter), [])
        return sum(name.lower() in known for name in names), len(names)

    return max(DELIMITERS, key=fit)


def choose_columns(path: Path | str, names: list[str], columns: Columns) -> tuple[str, str | None]:
    """The columns of texts and labels; None for labels if there is no such column."""
    text = choose_column(path, names, columns.text, TEXT_NAMES, "text")
    if columns.labels is None and not set(LABEL_NAMES) & {name.lower() for name in names}:
        return text, None
    return text, choose_column(path, names, columns.labels, LABEL_NAMES, "labels")


def choose_column(
    path: Path | str, columns: list[str], requested: str | None, usual: tuple[str, ...], role: str
) -> str:
    """The requested column, or the first whose name is usual for its role."""
    if requested is not None:
        if requested not in columns:
            raise TreetopError(f"{path}: no column {requested!r}; its columns are {', '.join(columns)}")
        return requested
    for name in usual:
        for column in columns:
            if column.lower() == name:
                return column
    raise TreetopError(
        f"{path}: which column holds the {role}? Its columns are {', '.join(columns)}: "
        f"choose one with --{role}-column"
    )


def csv_records(path: Path, delimiter: str) -> Iterator[tuple[int, Record]]:
    """Yield the records of a CSV or TSV file with the number of the line they end on."""
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    lines = (line + "\n" for line in lines_of(path))
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    try:
        header = next(reader, None)
        if header is None:
            raise TreetopError(f"{path}: empty file: add at least one document")
        header[0] = header[0].removeprefix("\ufeff")
        for row in reader:
            if not row:
                continue  # an empty line
            if len(row) != len(header):
                raise TreetopError(
                    f"{path}:{reader.line_num}: {len(row)} fields, but the header has "
                    f"{len(header)}: quote fields that contain the delimiter"
                )
            yield reader.line_num, dict(zip(header, row, strict=True))
    except csv.Error as error:
        raise TreetopError(f"{path}:{reader.line_num}: {error}") from None


def json_records(path: Path) -> Iterator[tuple[int, Record]]:
    """Yield the JSON objects of a file, one per line, with their line numbers."""
    for number, line in enumerate(lines_of(path), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError as error:
            raise TreetopError(
                f"{path}:{number}: not valid JSON ({error}): write one object per line"
            ) from None
        if not isinstance(record, dict):
            raise TreetopError(f"{path}:{number}: expected a JSON object")
        yield number, record


def text_in(path: Path, number: int, record: Record, column: str) -> str:
    """The text of a record; an error if the field is missing or is no string."""
    value = record.get(column)
    if not isinstance(value, str):
        raise TreetopError(f"{path}:{number}: {column!r} is not a text")
    return value


def guess_separator(values: Iterable[object]) -> str:
    """The separator of labels: the first of tab, ``;``, ``|`` and ``,`` that any field contains."""
    texts = [value for value in values if isinstance(value, str) and not is_list(value)]
    present = (one for one in SEPARATORS if any(one in text for text in texts))
    return next(present, "\t")


def is_list(value: str) -> bool:
    """Whether a field holds a JSON list."""
    return value.startswith("[") and value.endswith("]")


def field_labels(value: object, separator: str) -> list[str]:
    """Labels of a field, each once: a list, a JSON list, or a string divided at the separator."""
    if is_missing(value):
        return []
    if isinstance(value, str) and is_list(value):
        with suppress(ValueError):
            value = json.loads(value)
    if isinstance(value, str):
        parts: Iterable[object] = value.split(separator)
    else:
        parts = value if isinstance(value, list | tuple) else [value]
    names = (as_name(part) for part in parts if not is_missing(part))
    return list(dict.fromkeys(name for name in names if name))


def is_missing(value: object) -> bool:
    """Whether a cell is empty: None, NaN or pandas.NA."""
    return (
        value is None
        or type(value).__name__ == "NAType"
        or (isinstance(value, float) and value != value)
    )


def as_name(part: object) -> str:
    """A label as a string; integers arrive as floats if their column has missing values."""
    if isinstance(part, float) and part.is_integer():
        part = int(part)
    return str(part).strip()


def write(dataset: Dataset, target: Path, ending: str) -> None:
    """Write a file per split to a folder, or one file. In CSV and TSV labels are joined by ``;``."""
    if target.is_dir():
        for name, split in dataset.splits.items():
            write_file(split, dataset.label_names, target / (name + ending))
    else:
        write_file(dataset.split("train", *dataset.splits), dataset.label_names, target)


def write_file(split: Split, names: list[str] | None, path: Path) -> None:
    """Write texts and labels of one split."""
    texts = texts_of(split, "a table")
    labels: Iterable[list[str] | None] = (
        split.named_labels(names) if split.has_labels else [None] * len(texts)
    )
    records = zip(texts, labels, strict=True)
    if is_json(path):
        lines = ({"text": text} | ({} if line is None else {"labels": line}) for text, line in records)
        write_lines(path, (json.dumps(line, ensure_ascii=False) for line in lines))
        return
    special = {*SEPARATORS, "[", "]", '"'}
    plain = not any(special & set(name) for line in labels for name in line or ())
    with open_bytes(path, "wb") as raw, io.TextIOWrapper(raw, "utf-8", newline="") as file:
        delimiter = "\t" if plain_name(path).endswith(".tsv") else ","
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        writer.writerow(["text", "labels"] if split.has_labels else ["text"])
        for text, line in records:
            writer.writerow(
                [text]
                if line is None
                else [text, ";".join(line) if plain else json.dumps(line, ensure_ascii=False)]
            )
