"""Tables in memory: frames of pandas and polars, Arrow tables, dictionaries of lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from treetop.data.dataset import Columns, Dataset, Split
from treetop.data.tables import choose_columns, named_labels
from treetop.errors import TreetopError


def is_frame(data: Any) -> bool:
    """Whether this is a table with named columns."""
    return isinstance(data, Mapping) or hasattr(data, "columns") or hasattr(data, "column_names")


def read(frame: Any, columns: Columns) -> Dataset:
    """A frame as the split ``train``; a dictionary of frames by split."""
    if isinstance(frame, Mapping) and all(is_frame(one) for one in frame.values()):
        return Dataset("frame", {str(name): read_frame(one, columns) for name, one in frame.items()})
    return Dataset("frame", {"train": read_frame(frame, columns)})


def read_frame(frame: Any, columns: Columns) -> Split:
    """Texts and labels of one frame."""
    names = frame.keys() if isinstance(frame, Mapping) else None
    if names is None:
        names = frame.column_names if hasattr(frame, "column_names") else frame.columns
    text, labels = choose_columns("the frame", [str(name) for name in names], columns)  # type: ignore[arg-type]
    texts = values_of(frame, text)
    for number, one in enumerate(texts):
        if not isinstance(one, str):
            raise TreetopError(f"the frame: row {number}: {text!r} is not a text")
    if labels is None:
        return Split(texts, None)
    return Split(texts, named_labels([as_list(one) for one in values_of(frame, labels)]))


def values_of(frame: Any, column: str) -> list[Any]:
    """A column as a Python list."""
    series = frame[column]
    for way in ("to_pylist", "to_list", "tolist"):
        if hasattr(series, way):
            return list(getattr(series, way)())
    return list(series)


def as_list(value: Any) -> Any:
    """A cell's labels: arrays and tuples as lists, a missing value as none."""
    if value is None or (isinstance(value, float) and value != value):
        return None
    if isinstance(value, str):
        return value
    return list(value) if hasattr(value, "__iter__") else [value]
