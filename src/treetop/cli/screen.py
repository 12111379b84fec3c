"""Tables that commands print."""

from __future__ import annotations

from typing import Any

from treetop import metrics
from treetop.runtime.tables import text_table


def print_table(rows: list[list[str]], numbers: bool = True) -> None:
    """Print rows of cells, the first row as the heading; only `numbers` are aligned to the right."""
    print(text_table(rows, numbers=numbers))


def comparison_rows(results: list[dict[str, Any]]) -> list[list[str]]:
    """The main metrics, one row per metric and one column per model."""
    columns = [metrics.compared(result) for result in results]
    return [[key, *(column[key] for column in columns)] for key in columns[0]]


def percent(value: float) -> str:
    """A share of 1 in percent, with two decimals."""
    return f"{100 * value:.2f}"
