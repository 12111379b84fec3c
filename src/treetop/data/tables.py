"""CSV, TSV and JSONL with a column of texts and one of labels, guessed by name."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from treetop.data.dataset import Dataset, Split
from treetop.data.files import find, lines_of, plain_name
from treetop.errors import TreetopError

TEXT_NAMES = ("text", "content", "document", "body", "abstract", "description", "title")
LABEL_NAMES = ("labels", "label", "tags", "tag", "subjects", "subject", "categories", "category")
ENDINGS = (".csv", ".tsv", ".jsonl", ".ndjson")
SEPARATORS = ("\t", ";", "|", ",")
SPLITS = ("train", "dev", "test")


def matches(path: Path) -> bool:
    """Whether a file, or the files of a folder, are of this format."""
    if path.is_dir():
        return bool(split_files(path))
    return plain_name(path).endswith(ENDINGS)


def split_files(folder: Path) -> dict[str, Path]:
    """train.csv and so on of a folder."""
    found = {name: find(folder, *(name + ending for ending in ENDINGS)) for name in SPLITS}
    return {name: path for name, path in found.items() if path is not None}


def read(path: Path, text: str | None = None, labels: str | None = None) -> Dataset:
    """One file as the split ``train``, or the splits of a folder."""
    files = split_files(path) if path.is_dir() else {"train": path}
    kind = next(iter(files.values())).name.split(".")[1].upper()
    return Dataset(kind, {n: read_file(file, text, labels) for n, file in files.items()})


def read_file(path: Path, text: str | None, labels: str | None) -> Split:
    """Texts and labels of one file."""
    records = list(json_records(path) if "json" in plain_name(path) else csv_records(path))
    if not records:
        raise TreetopError(f"{path}: no records")
    columns = list(records[0][1])
    text = choose_column(path, columns, text, TEXT_NAMES, "text")
    if labels is None and not set(LABEL_NAMES) & {name.lower() for name in columns}:
        return Split([as_text(path, n, record, text) for n, record in records], None)
    labels = choose_column(path, columns, labels, LABEL_NAMES, "labels")
    texts = [as_text(path, number, record, text) for number, record in records]
    raw = [record.get(labels) for _, record in records]
    separator = guess_separator(value for value in raw if isinstance(value, str))
    return Split(texts, [as_labels(value, separator) for value in raw])


def choose_column(
    path: Path, columns: list[str], asked: str | None, usual: tuple[str, ...], role: str
) -> str:
    """The column asked for, or the one whose name is usual."""
    if asked is not None:
        if asked not in columns:
            raise TreetopError(f"{path}: no column {asked!r}: there are {', '.join(columns)}")
        return asked
    for name in usual:
        for column in columns:
            if column.lower() == name:
                return column
    raise TreetopError(
        f"{path}: which column holds the {role}? There are {', '.join(columns)}; "
        f"name it with --{role}-column"
    )


def csv_records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Records of a CSV or TSV file with the line they end on."""
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    delimiter = "\t" if plain_name(path).endswith(".tsv") else ","
    lines = (line + "\n" for line in lines_of(path))
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    try:
        header = next(reader, None)
        if header is None:
            raise TreetopError(f"{path}: empty file")
        header[0] = header[0].removeprefix("\ufeff")
        for row in reader:
            if len(row) != len(header):
                raise TreetopError(
                    f"{path}:{reader.line_num}: {len(row)} fields, the header has {len(header)}"
                )
            yield reader.line_num, dict(zip(header, row, strict=True))
    except csv.Error as error:
        raise TreetopError(f"{path}:{reader.line_num}: {error}") from None


def json_records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Records of a file with a JSON object a line."""
    for number, line in enumerate(lines_of(path), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError as error:
            raise TreetopError(f"{path}:{number}: not JSON ({error})") from None
        if not isinstance(record, dict):
            raise TreetopError(f"{path}:{number}: a JSON object is expected")
        yield number, record


def as_text(path: Path, number: int, record: dict[str, Any], column: str) -> str:
    """The text of a record."""
    value = record.get(column)
    if not isinstance(value, str):
        raise TreetopError(f"{path}:{number}: {column!r} is not a text")
    return value


def guess_separator(values: Iterable[str]) -> str:
    """What separates labels in a field: the first of tab, ``;``, ``|``, ``,`` that occurs."""
    seen = "".join(value for value, _ in zip(values, range(10_000), strict=False))
    return next((separator for separator in SEPARATORS if separator in seen), "\t")


def as_labels(value: Any, separator: str) -> list[str]:
    """Labels of a field: a JSON list, or text cut at the separator."""
    if value is None:
        return []
    parts = value if isinstance(value, list) else str(value).split(separator)
    return list(dict.fromkeys(name for part in parts if (name := str(part).strip())))
