"""LF sets: ``trn.json``, ``tst.json`` with title, content and target_ind, ``lbl.json`` with titles."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from treetop.data.dataset import Columns, Dataset, Split, clean_labels
from treetop.data.files import find_file, write_lines
from treetop.data.holding import texts_of
from treetop.data.pairs import as_short
from treetop.data.tables import Record, json_records
from treetop.data.xmlrepo_split import SHORT, read_filter, write_filter
from treetop.errors import TreetopError

NAME = "lf"
ABOUT = "an LF set: trn.json and tst.json (title, content, target_ind), lbl.json"


def matches(path: Path) -> bool:
    """Whether a folder holds this format."""
    return path.is_dir() and any(find_file(path, f"{short}.json") for short in SHORT.values())


def read(path: Path, _: Columns) -> Dataset:
    """All splits that are there; labels are named by their titles."""
    label_file = find_file(path, "lbl.json")
    records = list(json_records(label_file)) if label_file else []
    names = unique([title_of(record) or str(number) for number, (_, record) in enumerate(records)])
    texts = [text_of(label_file, number, record) for number, record in records if label_file]
    splits = {}
    for name, short in SHORT.items():
        file = find_file(path, f"{short}.json")
        if file is not None:
            splits[name] = read_records(file, len(names) if label_file else None)
    made = Dataset(NAME, splits, names or None, texts or None).same_width()
    filtered = {
        name: replace(split, excluded=read_filter(path, name, split.Y.shape))
        for name, split in made.splits.items()
        if split.Y is not None
    }
    return replace(made, splits=filtered)


def unique(names: list[str]) -> list[str]:
    """Names that differ: one that came before gets its number behind it."""
    seen: set[str] = set()
    made = []
    for number, name in enumerate(names):
        one = name if name not in seen else f"{name} ({number})"
        seen.add(one)
        made.append(one)
    return made


def title_of(record: Record) -> str:
    """A record's title on one line, if it has one."""
    return " ".join(str(record.get("title") or "").split())


def text_of(path: Path | None, number: int, record: Record) -> str:
    """Title and content of a record."""
    parts = [part for key in ("title", "content") if (part := record.get(key))]
    texts = [part for part in parts if isinstance(part, str)]
    if len(texts) < len(parts):
        raise TreetopError(f"{path}:{number}: title and content must be texts")
    return "\n".join(texts)


def read_records(path: Path, labels: int | None) -> Split:
    """One split, with relevances if it has them."""
    texts, ids, values, ends = [], [], [], [0]
    for number, record in json_records(path):
        texts.append(text_of(path, number, record))
        found, relevance = targets(path, number, record, labels)
        ids += found
        values += relevance
        ends.append(len(ids))
    if not texts:
        raise TreetopError(f"{path}: no records")
    width = labels if labels is not None else max(ids, default=-1) + 1
    cells = (np.array(values, np.float32), np.array(ids, np.int64), np.array(ends))
    return Split(texts, None, None, clean_labels(sp.csr_matrix(cells, shape=(len(texts), width))))


def targets(
    path: Path, number: int, record: Record, labels: int | None
) -> tuple[list[int], list[float]]:
    """Labels and relevances of a record."""
    found = record.get("target_ind")
    if not isinstance(found, list) or not all(type(one) is int and one >= 0 for one in found):
        raise TreetopError(f"{path}:{number}: target_ind must be a list of label numbers")
    if labels is not None and any(one >= labels for one in found):
        raise TreetopError(f"{path}:{number}: label {max(found)}: lbl.json has {labels:,} labels")
    relevance = record.get("target_rel", [1.0] * len(found))
    if not isinstance(relevance, list) or len(relevance) != len(found):
        raise TreetopError(f"{path}:{number}: target_rel must have as many entries as target_ind")
    try:
        return found, [float(one) for one in relevance]
    except (TypeError, ValueError):
        raise TreetopError(f"{path}:{number}: target_rel must hold numbers") from None


def write(dataset: Dataset, folder: Path) -> None:
    """A file for each split and one of labels."""
    dataset = dataset.with_matrices()
    for name, split in dataset.splits.items():
        if split.Y is None:
            raise TreetopError(f"{NAME} holds labels, and the split {name} has none")
        write_lines(folder / f"{SHORT[name]}.json", records_of(split))
        write_filter(folder, name, split)
    names = dataset.label_names or []
    says = dataset.label_texts or names
    lines = (label_record(n, *both) for n, both in enumerate(zip(names, says, strict=True)))
    write_lines(folder / "lbl.json", lines)


def label_record(number: int, name: str, text: str) -> str:
    """A line of lbl.json; what a label says beside its name is its content."""
    made = {"uid": str(number), "title": name}
    content = text.removeprefix(name).removeprefix("\n")
    return json.dumps(made | ({"content": content} if content else {}), ensure_ascii=False)


def records_of(split: Split) -> Iterator[str]:
    """Lines of JSON; a text is kept whole as the content."""
    assert split.Y is not None
    for number, text in enumerate(texts_of(split, NAME)):
        a, b = split.Y.indptr[number : number + 2]
        record = {
            "uid": str(number),
            "title": "",
            "content": text,
            "target_ind": split.Y.indices[a:b].tolist(),
            "target_rel": as_short(split.Y.data[a:b]),
        }
        yield json.dumps(record, ensure_ascii=False)
