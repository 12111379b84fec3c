"""CSV, TSV, JSON and Excel files with a column of texts and a column of labels."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

from treetop.data.columns import (
    LABEL_NAMES,
    TEXT_NAMES,
    Table,
    choose_columns,
    dataset_of,
    text_of_record,
    unread_columns,
)
from treetop.data.compression import open_bytes
from treetop.data.dataset import Dataset
from treetop.data.encodings import UTF8
from treetop.data.files import encoding_of, plain_name, split_files, write_lines
from treetop.data.holding import texts_of
from treetop.data.options import ReadOptions
from treetop.data.records import (
    Numbered,
    Record,
    csv_records,
    delimiter_of,
    excel_records,
    json_records,
)
from treetop.errors import TreetopError
from treetop.labels.separators import SEPARATORS, label_reading
from treetop.runtime.texts import TextCollector, stay_in_memory

NAME = "table"
ABOUT = "CSV, TSV, JSONL, a JSON array or Excel, with a column of texts and a column of labels"
USES = ("text_column", "labels_column", "label_separator", "encoding")
JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")
EXCEL_SUFFIX = ".xlsx"
SUFFIXES = (".csv", ".tsv", *JSON_SUFFIXES, EXCEL_SUFFIX)


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


def read(path: Path, options: ReadOptions) -> Dataset:
    """Read a file as the split ``train``, or all splits of a folder."""
    files = table_files(path)
    kind = plain_name(next(iter(files.values()))).rsplit(".", 1)[1]
    warnings: list[str] = []
    tables = {name: read_table(file, options, warnings) for name, file in files.items()}
    return dataset_of(kind, tables, options, tuple(files.values()), warnings)


def read_table(path: Path, options: ReadOptions, warnings: list[str]) -> Table:
    """Read the texts and the cells of labels of one file; `warnings` are added to."""
    delimiter, encoding, numbered = opened_table(path, options, warnings)
    names, records = read_ahead(path, numbered)
    if records is None:
        records = opened_table(path, options, [])[2]
    text, labels = choose_columns(path, names, options)
    texts, cells, unlabelled = TextCollector(), list[object](), 0
    kept: list[Record] | None = [] if options.keep_columns else None
    for number, record in records:
        texts.append(text_of_record(path, number, record, text, is_excel(path)))
        if labels is not None:
            cells.append(record.get(labels))
            unlabelled += labels not in record
        if kept is not None:
            kept.append(record)
    if unlabelled:
        warnings.append(
            f"{path}: {unlabelled:,} records have no {labels!r}: they are read without labels"
        )
    encoding = None if encoding == UTF8 else encoding
    warnings += unread_columns(names, text, labels, options)
    own = None if labels is None else cells
    return Table(texts.collected(), own, text, labels, delimiter, encoding, kept)


def read_ahead(path: Path, records: Numbered) -> tuple[list[str], Iterable[tuple[int, Record]] | None]:
    """The names of all columns, and all records, or None if they are too many to be in memory.

    All records of a CSV file have the columns of the first one, so they are not read ahead.
    """
    if (first := next(records, None)) is None:
        raise TreetopError(f"{path}: no records: add at least one")
    if not is_json(path) and not is_excel(path):
        return list(first[1]), chain([first], records)
    names, held, characters = dict[str, None](), list[tuple[int, Record]](), 0
    for number, record in chain([first], records):
        names.update(dict.fromkeys(record))
        characters += sum(len(value) for value in record.values() if isinstance(value, str))
        if stay_in_memory(characters):
            held.append((number, record))
        else:
            held.clear()
    return list(names), held or None


def opened_table(
    path: Path, options: ReadOptions, warnings: list[str]
) -> tuple[str | None, str | None, Numbered]:
    """The delimiter and the encoding of a file, as far as it has them, and its records."""
    if is_excel(path):
        if options.encoding is not None:
            raise TreetopError(f"{path}: Excel files have no other encoding: leave out --encoding")
        return None, None, excel_records(path, warnings.append)
    encoding = encoding_of(path, options.encoding)
    if is_json(path):
        return None, encoding, json_records(path, encoding)
    columns = (*options.text_column, options.labels_column or "", *TEXT_NAMES, *LABEL_NAMES)
    delimiter = delimiter_of(path, encoding, {name.lower() for name in columns if name})
    return delimiter, encoding, csv_records(path, delimiter, encoding)


def is_excel(path: Path) -> bool:
    """Whether a file is of Excel, by its name."""
    return plain_name(path).endswith(EXCEL_SUFFIX)


def is_json(path: Path) -> bool:
    """Whether a file holds JSON objects, by its name."""
    return plain_name(path).endswith(JSON_SUFFIXES)


def is_divided_again(lines: list[list[str]]) -> bool:
    """Whether labels joined by ``;`` would be read back as the same labels."""
    names = {name for line in lines for name in line}
    if any({*SEPARATORS, "[", "]", '"'} & set(name) or name != name.strip() for name in names):
        return False
    several = any(len(line) > 1 for line in lines)
    joined = (";".join(line) for line in lines)
    return not several or label_reading(joined).separator == ";"


def write(dataset: Dataset, target: Path, ending: str) -> None:
    """Write a file per split to a folder, or one file; in CSV and TSV, labels are joined by ``;``.

    Where this could be misread, they are written as JSON lists.
    """
    splits = dataset.splits
    if not target.is_dir():
        splits = {"train": dataset.split("train", *dataset.splits)}
    labels = {
        name: split.named_labels(dataset.label_names) if split.has_labels else None
        for name, split in splits.items()
    }
    known = [lines for lines in labels.values() if lines is not None]
    # Each file by itself and all of them together.
    plain = all(map(is_divided_again, (*known, [line for lines in known for line in lines])))
    for name, split in splits.items():
        file = target / (name + ending) if target.is_dir() else target
        write_file(texts_of(split, "a table"), labels[name], file, plain)


def write_file(
    texts: Sequence[str], labels: list[list[str]] | None, path: Path, joined: bool = False
) -> None:
    """Write texts and labels; in CSV and TSV, labels are `joined` by ``;`` or are JSON lists."""
    if is_json(path):
        lines: Iterable[dict[str, object]] = ({"text": text} for text in texts)
        if labels is not None:
            pairs = zip(texts, labels, strict=True)
            lines = ({"text": text, "labels": line} for text, line in pairs)
        write_lines(path, (json.dumps(line, ensure_ascii=False) for line in lines))
        return
    with open_bytes(path, "wb") as raw, io.TextIOWrapper(raw, "utf-8", newline="") as file:
        delimiter = "\t" if plain_name(path).endswith(".tsv") else ","
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        if labels is None:
            writer.writerows([["text"], *([text] for text in texts)])
            return
        writer.writerow(["text", "labels"])
        for text, line in zip(texts, labels, strict=True):
            cell = ";".join(line) if joined else json.dumps(line, ensure_ascii=False)
            writer.writerow([text, cell])
