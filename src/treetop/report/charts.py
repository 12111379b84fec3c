"""The charts of reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from treetop.report import svg
from treetop.report.svg import Axes

# Rows of charts with horizontal bars or dots.
ROW_HEIGHT = 26
NAME_WIDTH = 222
CHARACTERS_OF_NAME = 36


class Series(NamedTuple):
    """A line with its name."""

    name: str
    xs: Sequence[float]
    ys: Sequence[float]


class Measured(NamedTuple):
    """A value with its interval."""

    value: float
    low: float
    high: float


def color(number: int) -> str:
    """The class of the color and the dashes of a series."""
    return f"s{number % 6}"


def lines_chart(
    series: Sequence[Series],
    x_title: str,
    y_title: str,
    description: str,
    *,
    percent: bool = True,
    diagonal: bool = False,
    dots: bool = False,
) -> str:
    """Lines over a common axis; fractions if `percent`, else from 0 to the largest values."""
    most = (1.0, 1.0)
    if not percent:
        most = (
            max((x for one in series for x in one.xs), default=1.0),
            max((y for one in series for y in one.ys), default=1.0),
        )
    axes = Axes((0.0, 0.0), most)
    content = axes.vertical_grid(svg.ticks_between(0, most[0]), percent)
    content += axes.horizontal_grid(svg.ticks_between(0, most[1]), percent)
    if diagonal:
        content += svg.line(axes, (0, 1), (0, 1), "ideal")
    for number, one in enumerate(series):
        content += svg.line(axes, one.xs, one.ys, color(number))
        for x, y in zip(one.xs, one.ys, strict=True) if dots else ():
            label = f"{one.name}: {shown_point(x, percent)}, {shown_point(y, percent)}"
            content += svg.dot(axes.x(x), axes.y(y), color(number), label)
    return svg.drawing(axes, content + axes.titles(x_title, y_title), description)


def shown_point(value: float, percent: bool) -> str:
    """A coordinate in the title of a point."""
    return f"{100 * value:.1f}%" if percent else f"{value:,.4g}"


def estimates_chart(
    rows: Mapping[str, Sequence[Measured]], names: Sequence[str], description: str
) -> str:
    """A row per metric, with a dot and an interval per model; values are fractions."""
    height = svg.TOP + svg.BOTTOM + ROW_HEIGHT * len(rows) * max(1, (1 + len(names)) // 2)
    every = [estimate for estimates in rows.values() for estimate in estimates]
    low = min((one.low for one in every), default=0.0)
    high = max((one.high for one in every), default=1.0)
    pad = max(0.02, 0.06 * (high - low))
    axes = Axes((max(0.0, low - pad), 0), (min(1.0, high + pad), len(rows)), height=height, left=96)
    content = axes.vertical_grid(svg.ticks_between(axes.low[0], axes.high[0]), percent=True)
    for row, (metric, estimates) in enumerate(rows.items()):
        content += svg.text(axes.left - 8, axes.y(len(rows) - row - 0.5) + 4, metric, "end", "name")
        for number, one in enumerate(estimates):
            y = axes.y(len(rows) - row - (number + 1) / (len(estimates) + 1))
            span = f"{100 * one.value:.2f} ({100 * one.low:.2f} to {100 * one.high:.2f})"
            ends = f"M{axes.x(one.low)} {y}H{axes.x(one.high)}"
            content += f'<path class="whisker {color(number)}" d="{ends}"/>'
            content += svg.dot(
                axes.x(one.value), y, color(number), f"{names[number]}, {metric}: {span}"
            )
    return svg.drawing(axes, content + axes.titles("%"), description)


def groups_chart(
    groups: Mapping[str, Sequence[float]],
    names: Sequence[str],
    x_title: str,
    y_title: str,
    description: str,
) -> str:
    """Groups of vertical bars, one bar per model; values are fractions."""
    most = max((value for values in groups.values() for value in values), default=1.0) or 1.0
    axes = Axes((0.0, 0.0), (float(len(groups)), min(1.0, 1.08 * most)))
    content = axes.horizontal_grid(svg.ticks_between(0, axes.high[1]), percent=True)
    for place, (group, values) in enumerate(groups.items()):
        width = (axes.x(1) - axes.x(0)) * 0.76 / max(1, len(values))
        for number, value in enumerate(values):
            top, left = axes.y(value), axes.x(place + 0.12) + number * width
            label = f"{names[number]}, {group}: {100 * value:.1f}%"
            content += svg.bar(left, top, width - 1, axes.bottom - top, color(number), label)
            if len(values) == 1:
                content += svg.text(left + width / 2, top - 4, f"{100 * value:.0f}", "middle")
        content += svg.text(axes.x(place + 0.5), axes.bottom + 17, group, "middle")
    return svg.drawing(axes, content + axes.titles(x_title, y_title), description)


def durations_chart(rows: Mapping[str, tuple[float, str]], description: str) -> str:
    """A horizontal bar per stage: its value and the value as text."""
    height = 8 + ROW_HEIGHT * len(rows)
    most = max((value for value, _ in rows.values()), default=1.0) or 1.0
    axes = Axes((0.0, 0.0), (1.3 * most, 1.0), height=height, left=NAME_WIDTH)
    content = ""
    for row, (name, (value, shown)) in enumerate(rows.items()):
        y = 4 + ROW_HEIGHT * row
        cut = name if len(name) <= CHARACTERS_OF_NAME else f"{name[: CHARACTERS_OF_NAME - 1]}…"
        end = axes.x(value)
        content += svg.text(axes.left - 8, y + 16, cut, "end", "name")
        content += svg.bar(axes.left, y + 4, end - axes.left, ROW_HEIGHT - 8, "s0", f"{name}: {shown}")
        content += svg.text(end + 6, y + 16, shown)
    return svg.drawing(axes, content, description)
