"""LF data sets: ``trn.json``, ``tst.json`` (title, content, target_ind), ``lbl.json`` (titles)."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from treetop.data.dataset import Dataset, Split, clean_labels
from treetop.data.files import find_file, write_lines
from treetop.data.holding import label_matrix_of, texts_of
from treetop.data.options import ReadOptions
from treetop.data.pairs import as_short
from treetop.data.reading import Recognized
from treetop.data.records import Record, json_records
from treetop.data.sizes import LARGEST, check_columns
from treetop.data.xmlrepo_split import SHORT, read_filter, write_filter
from treetop.errors import TreetopError
from treetop.runtime.texts import TextCollector

NAME = "lf"
KEPT = ("uid", "title")  # what tells documents apart
LARGEST_RELEVANCE = 1e30  # of those that float32 holds
ABOUT = "an LF data set: trn.json and tst.json (title, content, target_ind), lbl.json"


def matches(path: Path) -> bool:
    """Whether a folder is of this format."""
    return path.is_dir() and any(find_file(path, f"{short}.json") for short in SHORT.values())


def read(path: Path, options: ReadOptions) -> Dataset:
    """Read all splits; labels are named by their titles."""
    label_file = find_file(path, "lbl.json")
    records = list(json_records(label_file)) if label_file else []
    names = unique([title_of(record) or str(number) for number, (_, record) in enumerate(records)])
    texts = [text_of(label_file, number, record) for number, record in records if label_file]
    splits = {}
    for name, short in SHORT.items():
        file = find_file(path, f"{short}.json")
        if file is not None:
            splits[name] = read_records(file, len(names) if label_file else None, options)
    files = tuple(file for short in SHORT.values() if (file := find_file(path, f"{short}.json")))
    reading = Recognized(files=files)
    dataset = Dataset(NAME, splits, names or None, texts or None, reading=reading).same_width()
    filtered = {
        name: replace(split, excluded=read_filter(path, name, split.Y.shape))
        for name, split in dataset.splits.items()
        if split.Y is not None
    }
    return replace(dataset, splits=filtered)


def unique(names: list[str]) -> list[str]:
    """Names made distinct: the number of the label is appended to a name that is taken."""
    distinct: dict[str, None] = {}
    for number, name in enumerate(names):
        distinct[name if name not in distinct else f"{name} ({number})"] = None
    return list(distinct)


def title_of(record: Record) -> str:
    """The title of a record on one line; empty without one."""
    return " ".join(str(record.get("title") or "").split())


def text_of(path: Path | None, number: int, record: Record) -> str:
    """Title and content of a record as one text."""
    parts = [part for key in ("title", "content") if (part := record.get(key))]
    texts = [part for part in parts if isinstance(part, str)]
    if len(texts) < len(parts):
        raise TreetopError(f"{path}:{number}: title and content must be strings")
    return "\n".join(texts)


def read_records(path: Path, labels: int | None, options: ReadOptions) -> Split:
    """Read one split, with relevances if it has them."""
    texts, ids, values, ends = TextCollector(), array("q"), array("f"), array("q", [0])
    kept: list[Record] | None = [] if options.keep_columns else None
    for number, record in json_records(path):
        texts.append(text_of(path, number, record))
        if kept is not None:
            kept.append({key: record[key] for key in KEPT if key in record})
        columns, relevance = targets(path, number, record, labels)
        ids.extend(columns)
        values.extend(relevance)
        ends.append(len(ids))
    if not len(texts):
        raise TreetopError(f"{path}: no records: add at least one")
    width = labels if labels is not None else max(ids, default=-1) + 1
    check_columns(path, width if labels is None else 0, len(ids) + len(texts), "labels")
    cells = (np.array(values), np.array(ids), np.array(ends))
    Y = clean_labels(sp.csr_matrix(cells, shape=(len(texts), width)))
    return Split(texts.collected(), None, None, Y, records=kept)


def targets(
    path: Path, number: int, record: Record, labels: int | None
) -> tuple[list[int], list[float]]:
    """Label numbers and relevances of a record."""
    columns = record.get("target_ind")
    if not isinstance(columns, list) or not all(
        type(column) is int and column >= 0 for column in columns
    ):
        raise TreetopError(f"{path}:{number}: target_ind must be a list of label numbers")
    if labels is None and any(column >= LARGEST for column in columns):
        raise TreetopError(
            f"{path}:{number}: label {max(columns)}: label numbers must be below {LARGEST:,}"
        )
    if labels is not None and any(column >= labels for column in columns):
        raise TreetopError(f"{path}:{number}: label {max(columns)}: lbl.json has {labels:,} labels")
    relevance = record.get("target_rel", [1.0] * len(columns))
    if not isinstance(relevance, list) or len(relevance) != len(columns):
        raise TreetopError(f"{path}:{number}: target_rel must have as many entries as target_ind")
    if not all(type(value) in (int, float) and abs(value) <= LARGEST_RELEVANCE for value in relevance):
        raise TreetopError(f"{path}:{number}: target_rel must hold numbers")
    return columns, [float(value) for value in relevance]


def write(dataset: Dataset, folder: Path) -> None:
    """Write one file per split and one of labels."""
    dataset = dataset.with_matrices()
    for name, split in dataset.splits.items():
        Y = label_matrix_of(split, name, NAME)
        write_lines(folder / f"{SHORT[name]}.json", records_of(texts_of(split, NAME), Y))
        write_filter(folder, name, split)
    names = dataset.label_names or []
    labels = zip(names, dataset.label_texts or names, strict=True)
    lines = (label_record(number, name, text) for number, (name, text) in enumerate(labels))
    write_lines(folder / "lbl.json", lines)


def label_record(number: int, name: str, text: str) -> str:
    """A line of lbl.json; the text of a label without its name is the content."""
    record = {"uid": str(number), "title": name}
    content = text.removeprefix(name).removeprefix("\n")
    return json.dumps(record | ({"content": content} if content else {}), ensure_ascii=False)


def records_of(texts: Sequence[str], Y: sp.csr_matrix) -> Iterator[str]:
    """Yield one JSON line per document, with the whole text as the content."""
    for number, text in enumerate(texts):
        start, end = Y.indptr[number : number + 2]
        record = {
            "uid": str(number),
            "title": "",
            "content": text,
            "target_ind": Y.indices[start:end].tolist(),
            "target_rel": as_short(Y.data[start:end]),
        }
        yield json.dumps(record, ensure_ascii=False)
