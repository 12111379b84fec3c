"""Tables that commands print."""

from __future__ import annotations

from typing import Any

from treetop import metrics


def print_table(rows: list[list[str]], numbers: bool = True) -> None:
    """Print rows of cells, the first row as the heading.

    The first column is aligned to the left, and so are the others unless they hold `numbers`.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for number, row in enumerate(rows):
        cells = [
            cell.rjust(width) if column and numbers else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())
        if number == 0:
            print("  ".join("-" * width for width in widths))


def print_measures(result: dict[str, Any]) -> None:
    """Print everything that `metrics.evaluate` returned, in per cent."""
    figures = metrics.figures(result)
    depths = [key.partition("@")[2] for key in figures if key.startswith("P@")]
    print(f"{result['documents']:,} documents, {result['labels']:,} labels, metrics in per cent\n")
    rows = [["", *(f"@{depth}" for depth in depths)]]
    for metric in metrics.METRICS.values():
        if metric.every_k:
            cells = [figures.pop(f"{metric.name}@{depth}", "") for depth in depths]
            rows.append([metric.heading, *cells])
    print_table(rows)
    for key, figure in figures.items():
        print(f"{key}  {figure}")
    print("\nby number of training documents per label:\n")
    rows = [["training documents", "labels", "occurrences", "recall", "precision", "F1"]]
    for bucket, row in result["by_frequency"].items():
        cells = [percent(row[name]) for name in ("recall", "precision", "f1")]
        rows.append([bucket, f"{row['labels']:,}", f"{row['occurrences']:,}", *cells])
    print_table(rows)


def print_comparison(results: dict[str, dict[str, Any]]) -> None:
    """Print the main metrics of several models, one column per model."""
    rows = [["", *results], *comparison_rows(list(results.values()))]
    rows.append(["training, seconds", *(f"{result['seconds']:.1f}" for result in results.values())])
    print_table(rows)


def comparison_rows(results: list[dict[str, Any]]) -> list[list[str]]:
    """The main metrics, one row per metric and one column per model."""
    columns = [metrics.compared(result) for result in results]
    return [[key, *(column[key] for column in columns)] for key in columns[0]]


def percent(value: float) -> str:
    """A share of 1 in per cent, with two decimals."""
    return f"{100 * value:.2f}"
