"""CSV, TSV and JSONL with a column of texts and one of labels, guessed by name."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from treetop.data.dataset import SPLITS, Columns, Dataset, Split
from treetop.data.files import find, lines_of, open_bytes, plain_name, write_lines
from treetop.data.holding import texts_of
from treetop.errors import TreetopError

NAME = "table"
ABOUT = "CSV, TSV or JSONL with a column of texts and one of labels"

TEXT_NAMES = ("text", "content", "document", "body", "abstract", "description", "title")
LABEL_NAMES = ("labels", "label", "tags", "tag", "subjects", "subject", "categories", "category")
ENDINGS = (".csv", ".tsv", ".jsonl", ".ndjson")
SEPARATORS = ("\t", ";", "|", ",")


def matches(path: Path) -> bool:
    """Whether a file, or the files of a folder, are of this format."""
    if path.is_dir():
        return bool(split_files(path))
    return plain_name(path).endswith(ENDINGS)


def split_files(folder: Path) -> dict[str, Path]:
    """train.csv and so on of a folder."""
    found = {name: find(folder, *(name + ending for ending in ENDINGS)) for name in SPLITS}
    return {name: path for name, path in found.items() if path is not None}


def read(path: Path, columns: Columns) -> Dataset:
    """One file as the split ``train``, or the splits of a folder."""
    files = split_files(path) if path.is_dir() else {"train": path}
    kind = plain_name(next(iter(files.values()))).rsplit(".", 1)[1].lower()
    return Dataset(kind, {name: read_file(file, columns) for name, file in files.items()})


def read_file(path: Path, columns: Columns) -> Split:
    """Texts and labels of one file."""
    records = json_records(path) if "json" in plain_name(path) else csv_records(path)
    first = next(records, None)
    if first is None:
        raise TreetopError(f"{path}: no records")
    text, labels = choose_columns(path, list(first[1]), columns)
    texts, raw = [], []
    for number, record in chain([first], records):
        texts.append(as_text(path, number, record, text))
        if labels is not None:
            raw.append(record.get(labels))
    return Split(texts, named_labels(raw) if labels is not None else None)


def choose_columns(path: Path, names: list[str], columns: Columns) -> tuple[str, str | None]:
    """The columns of texts and labels; None for labels if there is no such column."""
    text = choose_column(path, names, columns.text, TEXT_NAMES, "text")
    if columns.labels is None and not set(LABEL_NAMES) & {name.lower() for name in names}:
        return text, None
    return text, choose_column(path, names, columns.labels, LABEL_NAMES, "labels")


def named_labels(raw: list[Any]) -> list[list[str]]:
    """Labels of all fields, cut at what separates them."""
    separator = guess_separator(value for value in raw if isinstance(value, str))
    return [as_labels(value, separator) for value in raw]


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
    if "json" in plain_name(path):
        lines = ({"text": text} | ({} if line is None else {"labels": line}) for text, line in records)
        write_lines(path, (json.dumps(line, ensure_ascii=False) for line in lines))
        return
    joint = separator_for(labels)
    with open_bytes(path, "wb") as raw, io.TextIOWrapper(raw, "utf-8", newline="") as file:
        delimiter = "\t" if plain_name(path).endswith(".tsv") else ","
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        writer.writerow(["text", "labels"] if split.has_labels else ["text"])
        for text, line in records:
            writer.writerow([text] if line is None else [text, joint.join(line)])


def separator_for(labels: Iterable[list[str] | None]) -> str:
    """What can stand between labels so that they are read back the same."""
    seen = {character for line in labels for name in line or () for character in name}
    if "\t" not in seen and not seen & set(SEPARATORS[1:]):
        return ";"
    if "\t" not in seen:
        return "\t"
    raise TreetopError("a label contains a tab: CSV and TSV cannot hold it, JSONL can")
