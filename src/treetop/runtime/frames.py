"""Tables with named columns, told from arrays and lists without importing pandas, polars or Arrow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def column_names(data: object) -> list[Any] | None:
    """Return the column names of a table or dictionary, None for anything else."""
    if isinstance(data, Mapping):
        return list(data)
    for attribute in ("column_names", "columns"):  # Arrow tables have both: `columns` are arrays there
        if hasattr(data, attribute) and not callable(getattr(data, attribute)):
            return list(getattr(data, attribute))
    return None


def listed(names: list[Any]) -> str:
    """Write the first few column names for a message."""
    shown = ", ".join(map(str, names[:5]))
    return f"{shown}, …" if len(names) > 5 else shown
