"""Tables in memory: pandas and polars data frames, Arrow tables, dictionaries of lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from treetop.data.columnar import SPLIT_ALIASES, check_texts, with_class_names
from treetop.data.dataset import Columns, Dataset
from treetop.data.tables import Table, choose_columns, dataset_of, is_missing


def is_frame(data: object) -> bool:
    """Whether `data` is a table with named columns."""
    return isinstance(data, Mapping) or hasattr(data, "columns") or hasattr(data, "column_names")


def read_frames(frame: Any, columns: Columns) -> Dataset:
    """Read a frame as the split ``train``, or a dictionary of frames by split."""
    frames = {"train": frame}
    if isinstance(frame, Mapping) and all(is_frame(one) for one in frame.values()):
        frames = {SPLIT_ALIASES.get(str(name), str(name)): one for name, one in frame.items()}
    return dataset_of("frame", {name: read_frame(one, columns) for name, one in frames.items()})


def read_frame(frame: Any, columns: Columns) -> Table:
    """Read texts and labels of one frame."""
    names = frame.keys() if isinstance(frame, Mapping) else None
    if names is None:
        names = frame.column_names if hasattr(frame, "column_names") else frame.columns
    known = {str(name): name for name in names}
    text, labels = choose_columns("the frame", list(known), columns)
    texts = check_texts("the frame", values_of(frame, known[text]), text, first=0)
    if labels is None:
        return Table(texts, None, text, None)
    values = values_of(frame, known[labels])
    if hasattr(frame, "schema") and hasattr(frame, "column_names"):
        values = with_class_names(frame.schema, labels, values)
    return Table(texts, [labels_of_cell(value) for value in values], text, labels)


def values_of(frame: Any, column: Any) -> list[Any]:
    """A column as a Python list."""
    series = frame[column]
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(series, method):
            return list(getattr(series, method)())
    return list(series)


def labels_of_cell(value: Any) -> Any:
    """Labels of a cell: a string or a missing value as it is, anything else as a list."""
    if isinstance(value, str) or is_missing(value):
        return value
    return list(value) if hasattr(value, "__iter__") else [value]
