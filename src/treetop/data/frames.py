"""Tables in memory: frames of pandas and polars, Arrow tables, dictionaries of lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from treetop.data.columnar import OTHER_NAMES, with_class_names
from treetop.data.dataset import Columns, Dataset
from treetop.data.tables import Raw, choose_columns, is_missing, with_labels
from treetop.errors import TreetopError


def is_frame(data: object) -> bool:
    """Whether this is a table with named columns."""
    return isinstance(data, Mapping) or hasattr(data, "columns") or hasattr(data, "column_names")


def read_frames(frame: Any, columns: Columns) -> Dataset:
    """A frame as the split ``train``; a dictionary of frames by split."""
    frames = {"train": frame}
    if isinstance(frame, Mapping) and all(is_frame(one) for one in frame.values()):
        frames = {OTHER_NAMES.get(str(name), str(name)): one for name, one in frame.items()}
    found = {name: read_frame(one, columns) for name, one in frames.items()}
    return Dataset("frame", with_labels(found))


def read_frame(frame: Any, columns: Columns) -> Raw:
    """Texts and labels of one frame."""
    names = frame.keys() if isinstance(frame, Mapping) else None
    if names is None:
        names = frame.column_names if hasattr(frame, "column_names") else frame.columns
    known = {str(name): name for name in names}
    text, labels = choose_columns("the frame", list(known), columns)
    texts = values_of(frame, known[text])
    for number, one in enumerate(texts):
        if not isinstance(one, str):
            raise TreetopError(f"the frame: row {number}: {text!r} is not a text")
    if labels is None:
        return Raw(texts, None)
    values = values_of(frame, known[labels])
    if hasattr(frame, "schema") and hasattr(frame, "column_names"):
        values = with_class_names(frame.schema, labels, values)
    return Raw(texts, [labels_of_cell(one) for one in values])


def values_of(frame: Any, column: Any) -> list[Any]:
    """A column as a Python list."""
    series = frame[column]
    for way in ("to_pylist", "to_list", "tolist"):
        if hasattr(series, way):
            return list(getattr(series, way)())
    return list(series)


def labels_of_cell(value: Any) -> Any:
    """A cell's labels: arrays and tuples as lists, a missing value as none."""
    if isinstance(value, str) or is_missing(value):
        return value
    return list(value) if hasattr(value, "__iter__") else [value]
