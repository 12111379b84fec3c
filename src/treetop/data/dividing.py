"""Write the parts of a data set to a folder, tables with all their columns."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from treetop.data.compression import open_bytes
from treetop.data.convert import WRITERS
from treetop.data.dataset import Dataset, Split
from treetop.data.files import write_lines
from treetop.errors import TreetopError
from treetop.runtime.files import check_absent, replacing_folder

# Formats of tables that are written as they are; other tables become JSONL.
DELIMITED = ("csv", "tsv")


def write_divided(
    dataset: Dataset, split: Split, parts: Mapping[str, np.ndarray], target: Path, form: str | None
) -> str:
    """Write the rows of each part as a split of a new folder; return the name of the format.

    Without a format, tables keep their columns, texts are written as text lines, and features, with or
    without texts, as pecos.
    """
    check_absent(target)
    if form is not None and form not in WRITERS:
        raise TreetopError(f"unknown format {form!r}: choose one of {', '.join(WRITERS)}")
    divided = {name: split.rows(rows) for name, rows in parts.items()}
    with replacing_folder(target, check_absent) as folder:
        if form is None and split.records is not None and split.X is None:
            form = dataset.format if dataset.format in DELIMITED else "jsonl"
            for name, part in divided.items():
                file = folder / f"{name}.{form}"
                write_records(part.records or [], file, dataset.reading.delimiter)
            return form
        form = form or ("text-lines" if split.X is None else "pecos")
        WRITERS[form](replace(dataset, splits=divided), folder)
    return form


def write_records(records: Sequence[Mapping[str, Any]], path: Path, delimiter: str | None) -> None:
    """Write the rows of a table with all their columns."""
    if path.suffix == ".jsonl":
        write_lines(path, (json.dumps(record, ensure_ascii=False, default=str) for record in records))
        return
    names = list(dict.fromkeys(name for record in records for name in record))
    with open_bytes(path, "wb") as raw, io.TextIOWrapper(raw, "utf-8", newline="") as file:
        separator = "\t" if path.suffix == ".tsv" else delimiter or ","
        writer = csv.writer(file, delimiter=separator, lineterminator="\n")
        writer.writerow(names)
        writer.writerows([record.get(name) for name in names] for record in records)
