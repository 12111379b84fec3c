"""What commands print."""

from __future__ import annotations

from typing import Any

from treetop.kernels import all_kernels
from treetop.progress import reporter

COMPARED = ("P@1", "P@3", "P@5", "RP@5", "nDCG@5", "PSP@5", "macro_f1@5")
MEASURES = ("P", "R", "RP", "nDCG", "PSP", "PSnDCG", "micro_f1", "macro_f1")


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
    depths = [name.split("@")[1] for name in result if name.startswith("P@")]
    print(f"{result['documents']:,} documents, {result['labels']:,} labels, figures in per cent\n")
    rows = [["", *(f"@{depth}" for depth in depths)]]
    for measure in MEASURES:
        rows.append([measure, *(percent(result[f"{measure}@{depth}"]) for depth in depths)])
    print_table(rows)
    for name, value in result.items():
        if name.startswith("coverage") or ">=" in name:
            print(f"{name}  {percent(value)}")
    print("\nby the number of training documents a label has:\n")
    rows = [["training documents", "labels", "occurrences", "recall", "precision", "F1"]]
    for bucket, row in result["by_frequency"].items():
        figures = [percent(row[name]) for name in ("recall", "precision", "f1")]
        rows.append([bucket, f"{row['labels']:,}", f"{row['occurrences']:,}", *figures])
    print_table(rows)


def print_comparison(results: dict[str, dict[str, Any]]) -> None:
    """The main figures of several models, a column each."""
    rows = [["", *results]]
    for name in COMPARED:
        rows.append([name, *(percent(result[name]) for result in results.values())])
    rows.append(["training, seconds", *(f"{result['seconds']:.1f}" for result in results.values())])
    print_table(rows)


def percent(value: float) -> str:
    """A share of 1 in per cent."""
    return f"{100 * value:.2f}"
