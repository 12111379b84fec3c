"""Plots of an evaluation with matplotlib."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from treetop.evaluation.bootstrap import Interval
from treetop.evaluation.context import Context
from treetop.evaluation.curves import precision_recall
from treetop.runtime.extras import require


def draw(
    result: Mapping[str, Any],
    intervals: Mapping[str, Interval],
    context: Context,
    by_length: Mapping[str, Mapping[str, float]],
) -> Any:
    """Draw metrics with intervals, precision and recall, and results by frequency and length."""
    require("plots", "report")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 7 if by_length else 3.6), layout="constrained")
    axes = figure.subplots(2 if by_length else 1, 2 if by_length else 3).ravel()
    draw_intervals(axes[0], result, intervals)
    draw_curve(axes[1], context)
    frequencies = {name: 100 * row["recall"] for name, row in result["by_frequency"].items()}
    draw_bars(axes[2], frequencies, "training documents per label", "recall, %")
    if by_length:
        ndcg = {name: 100 * list(row.values())[3] for name, row in by_length.items()}
        draw_bars(axes[3], ndcg, "length of the documents", "nDCG, %")
    return figure


def draw_intervals(axes: Any, result: Mapping[str, Any], intervals: Mapping[str, Interval]) -> None:
    """Draw the main metrics as dots with their intervals."""
    values = 100 * np.array([result[key] for key in intervals])
    low, high = 100 * np.array(list(intervals.values())).T
    errors = [np.maximum(0, values - low), np.maximum(0, high - values)]
    axes.errorbar(values, range(values.size), xerr=errors, fmt="o", capsize=3)
    axes.set_yticks(range(values.size), list(intervals))
    axes.invert_yaxis()
    axes.set(xlabel="%, with 95% intervals", title="Metrics")


def draw_curve(axes: Any, context: Context) -> None:
    """Draw precision against recall over thresholds of the score."""
    curve = precision_recall(context)
    axes.plot(100 * curve.recall, 100 * curve.precision)
    axes.set(xlabel="recall, %", ylabel="precision, %", title="Over thresholds of the score")
    axes.set(xlim=(0, 100), ylim=(0, 101))


def draw_bars(axes: Any, values: dict[str, float], xlabel: str, ylabel: str) -> None:
    """Draw a bar per group."""
    axes.bar(range(len(values)), list(values.values()))
    axes.set_xticks(range(len(values)), list(values), rotation=30, ha="right")
    axes.set(xlabel=xlabel, ylabel=ylabel)
