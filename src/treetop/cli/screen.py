"""What commands print."""

from __future__ import annotations

from typing import Any

from treetop import metrics
from treetop.kernels import all_kernels
from treetop.runtime.progress import reporter


def compile_kernels() -> None:
    """Compile what is not in numba's cache yet, as a step that can be seen."""
    kernels = list(all_kernels())
    bars = reporter()
    advance = bars.step("compiling (first run only)", len(kernels))
    for kernel in kernels:
        kernel.compile()
        advance()
    bars.close()


def print_table(rows: list[list[str]]) -> None:
    """Rows of cells, the first row a heading; the first column to the left, others to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for number, row in enumerate(rows):
        cells = [
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())
        if number == 0:
            print("  ".join("-" * width for width in widths))


def print_measures(result: dict[str, Any]) -> None:
    """All figures of `metrics.evaluate`, in per cent."""
    figures = metrics.figures(result)
    depths = [key.partition("@")[2] for key in figures if key.startswith("P@")]
    print(f"{result['documents']:,} documents, {result['labels']:,} labels, figures in per cent\n")
    rows = [["", *(f"@{depth}" for depth in depths)]]
    for metric in metrics.METRICS.values():
        if metric.every_k:
            cells = [figures.pop(f"{metric.name}@{depth}", "") for depth in depths]
            rows.append([metric.heading, *cells])
    print_table(rows)
    for key, figure in figures.items():
        print(f"{key}  {figure}")
    print("\nby the number of training documents a label has:\n")
    rows = [["training documents", "labels", "occurrences", "recall", "precision", "F1"]]
    for bucket, row in result["by_frequency"].items():
        cells = [percent(row[name]) for name in ("recall", "precision", "f1")]
        rows.append([bucket, f"{row['labels']:,}", f"{row['occurrences']:,}", *cells])
    print_table(rows)


def print_comparison(results: dict[str, dict[str, Any]]) -> None:
    """The main figures of several models, a column each."""
    rows = [["", *results], *comparison_rows(list(results.values()))]
    rows.append(["training, seconds", *(f"{result['seconds']:.1f}" for result in results.values())])
    print_table(rows)


def comparison_rows(results: list[dict[str, Any]]) -> list[list[str]]:
    """The main metrics, one per row, a column per model."""
    columns = [metrics.compared(result) for result in results]
    return [[key, *(column[key] for column in columns)] for key in columns[0]]


def percent(value: float) -> str:
    """A share of 1 in per cent."""
    return f"{100 * value:.2f}"
