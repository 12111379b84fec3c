"""Tables in memory: pandas and polars data frames, Arrow tables, dictionaries of lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from treetop.data.cells import is_missing
from treetop.data.columnar import SPLIT_ALIASES, with_class_names
from treetop.data.columns import Table, choose_columns, dataset_of, joined_texts, unread_columns
from treetop.data.dataset import Dataset
from treetop.data.options import ReadOptions
from treetop.errors import TreetopError


def is_frame(data: object) -> bool:
    """Whether `data` is a table with named columns."""
    return isinstance(data, Mapping) or hasattr(data, "columns") or hasattr(data, "column_names")


def read_frames(frame: object, options: ReadOptions) -> Dataset:
    """Read a frame as the split ``train``, or a dictionary of frames by split."""
    frames = {"train": frame}
    if isinstance(frame, Mapping) and all(is_frame(part) for part in frame.values()):
        frames = {SPLIT_ALIASES.get(str(name), str(name)): part for name, part in frame.items()}
    notes: list[str] = []
    tables = {name: read_frame(part, options, notes) for name, part in frames.items()}
    return dataset_of("frame", tables, options, warnings=notes)


def read_frame(frame: Any, options: ReadOptions, notes: list[str]) -> Table:
    """Read texts and labels of one frame; `notes` are added to."""
    names = frame.keys() if isinstance(frame, Mapping) else None
    if names is None:
        names = frame.column_names if hasattr(frame, "column_names") else frame.columns
    listed = list(map(str, names))
    known = dict(zip(listed, names, strict=True))
    text, labels = choose_columns("the frame", listed, options)
    notes += unread_columns(listed, text, labels, options)
    for name in (*text, labels):
        if listed.count(str(name)) > 1:
            raise TreetopError(f"the frame has several columns {name!r}: rename them")
    columns = [values_of(frame, known[name]) for name in text]
    if len({len(values) for values in columns}) > 1:
        raise TreetopError("the frame has columns of different lengths: give one value per document")
    texts = joined_texts("the frame", columns, text, first=0)
    if labels is None:
        return Table(texts, None, text, None)
    values = values_of(frame, known[labels])
    if hasattr(frame, "schema") and hasattr(frame, "column_names"):
        values = with_class_names(frame.schema, labels, values)
    if len(values) != len(texts):
        raise TreetopError(
            f"the frame has {len(texts):,} texts in {text[0]!r}, but {len(values):,} values in "
            f"{labels!r}: give one per document"
        )
    return Table(texts, [labels_of_cell(value) for value in values], text, labels)


def values_of(frame: Any, column: Any) -> list[Any]:
    """A column as a Python list."""
    series = frame[column]
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(series, method):
            return list(getattr(series, method)())
    return list(series)


def labels_of_cell(value: object) -> Any:
    """Labels of a cell: a string or a missing value as it is, anything else as a list."""
    if isinstance(value, str | Mapping) or is_missing(value):
        return value
    return list(value) if hasattr(value, "__iter__") else [value]
