"""CSV, TSV and JSONL with a column of texts and one of labels, guessed by name."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from treetop.data.dataset import SPLITS, Columns, Dataset, Split
from treetop.data.files import find_file, lines_of, open_bytes, plain_name, write_lines
from treetop.data.holding import texts_of
from treetop.errors import TreetopError

NAME = "table"
ABOUT = "CSV, TSV or JSONL with a column of texts and one of labels"

TEXT_NAMES = ("text", "content", "document", "body", "abstract", "description", "title")
LABEL_NAMES = ("labels", "label", "tags", "tag", "subjects", "subject", "categories", "category")
ENDINGS = (".csv", ".tsv", ".jsonl", ".ndjson")
SEPARATORS = ("\t", ";", "|", ",")

Record = dict[str, object]  # values by column


class Raw(NamedTuple):
    """Texts of a split and its fields of labels, if there are any."""

    texts: list[str]
    labels: list[object] | None


def matches(path: Path) -> bool:
    """Whether a file, or the files of a folder, are of this format."""
    if path.is_dir():
        return bool(split_files(path))
    return plain_name(path).endswith(ENDINGS)


def split_files(folder: Path) -> dict[str, Path]:
    """train.csv and so on of a folder."""
    found = {name: find_file(folder, *(name + ending for ending in ENDINGS)) for name in SPLITS}
    return {name: path for name, path in found.items() if path is not None}


def read(path: Path, columns: Columns) -> Dataset:
    """One file as the split ``train``, or the splits of a folder."""
    files = split_files(path) if path.is_dir() else {"train": path}
    kind = plain_name(next(iter(files.values()))).rsplit(".", 1)[1]
    return Dataset(kind, with_labels({n: read_table(file, columns) for n, file in files.items()}))


def read_table(path: Path, columns: Columns) -> Raw:
    """Texts and labels of one file, labels as they stand there."""
    records = list(json_records(path) if is_json(path) else csv_records(path))
    if not records:
        raise TreetopError(f"{path}: no records")
    names = list(dict.fromkeys(name for _, record in records for name in record))
    text, labels = choose_columns(path, names, columns)
    texts = [as_text(path, number, record, text) for number, record in records]
    return Raw(texts, None if labels is None else [record.get(labels) for _, record in records])


def is_json(path: Path) -> bool:
    """Whether a file has a JSON object a line."""
    return plain_name(path).endswith((".jsonl", ".ndjson", ".json"))


def choose_columns(path: Path | str, names: list[str], columns: Columns) -> tuple[str, str | None]:
    """The columns of texts and labels; None for labels if there is no such column."""
    text = choose_column(path, names, columns.text, TEXT_NAMES, "text")
    if columns.labels is None and not set(LABEL_NAMES) & {name.lower() for name in names}:
        return text, None
    return text, choose_column(path, names, columns.labels, LABEL_NAMES, "labels")


def with_labels(splits: dict[str, Raw]) -> dict[str, Split]:
    """Splits with their labels cut at what separates them, the same in all of them."""
    separator = guess_separator(v for raw in splits.values() for v in raw.labels or ())
    return {
        name: Split(
            raw.texts, None if raw.labels is None else [field_labels(v, separator) for v in raw.labels]
        )
        for name, raw in splits.items()
    }


def choose_column(
    path: Path | str, columns: list[str], asked: str | None, usual: tuple[str, ...], role: str
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


def csv_records(path: Path) -> Iterator[tuple[int, Record]]:
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
            if not row:
                continue  # an empty line
            if len(row) != len(header):
                raise TreetopError(
                    f"{path}:{reader.line_num}: {len(row)} fields, the header has {len(header)}"
                )
            yield reader.line_num, dict(zip(header, row, strict=True))
    except csv.Error as error:
        raise TreetopError(f"{path}:{reader.line_num}: {error}") from None


def json_records(path: Path) -> Iterator[tuple[int, Record]]:
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


def as_text(path: Path, number: int, record: Record, column: str) -> str:
    """The text of a record."""
    value = record.get(column)
    if not isinstance(value, str):
        raise TreetopError(f"{path}:{number}: {column!r} is not a text")
    return value


def guess_separator(values: Iterable[object]) -> str:
    """What separates labels in a field: the first of tab, ``;``, ``|``, ``,`` that occurs in any."""
    found = {
        one for v in values if isinstance(v, str) and not is_list(v) for one in SEPARATORS if one in v
    }
    return next((separator for separator in SEPARATORS if separator in found), "\t")


def is_list(value: str) -> bool:
    """Whether a field holds a JSON list."""
    return value.startswith("[") and value.endswith("]")


def field_labels(value: object, separator: str) -> list[str]:
    """Labels of a field: a list, a list in JSON, or text cut at the separator."""
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
    """Whether a cell is empty: None, not a number, or pandas's mark for it."""
    return (
        value is None
        or type(value).__name__ == "NAType"
        or (isinstance(value, float) and value != value)
    )


def as_name(part: object) -> str:
    """A label's name; a column of whole numbers with gaps came as floats."""
    if isinstance(part, float) and part.is_integer():
        part = int(part)
    return str(part).strip()


def write(dataset: Dataset, target: Path, ending: str) -> None:
    """A file for each split of a folder, or one file; labels as a list (JSONL) or joined by ``;``."""
    if target.is_dir():
        for name, split in dataset.splits.items():
            write_file(split, dataset.label_names, target / (name + ending))
    else:
        write_file(dataset.split("train", *dataset.splits), dataset.label_names, target)


def write_file(split: Split, names: list[str] | None, path: Path) -> None:
    """Texts and labels of one split."""
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
