"""Parts of SVG charts: axes, points, lines and bars. Their colors are classes of the page's style."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 440, 290
LEFT, RIGHT, TOP, BOTTOM = 48, 14, 12, 44


@dataclass(frozen=True)
class Axes:
    """The area of a chart, and the ranges of values along both axes."""

    low: tuple[float, float]  # of x and y
    high: tuple[float, float]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT

    def x(self, value: float) -> float:
        """The horizontal position of a value."""
        share = (value - self.low[0]) / ((self.high[0] - self.low[0]) or 1)
        return round(self.left + share * (self.width - self.left - RIGHT), 1)

    def y(self, value: float) -> float:
        """The vertical position of a value."""
        share = (value - self.low[1]) / ((self.high[1] - self.low[1]) or 1)
        return round(self.height - BOTTOM - share * (self.height - BOTTOM - TOP), 1)

    @property
    def bottom(self) -> float:
        """The position of the horizontal axis."""
        return self.height - BOTTOM

    def vertical_grid(self, ticks: Sequence[float], percent: bool = False) -> str:
        """Lines and numbers of the horizontal axis."""
        parts = []
        for tick in ticks:
            x = self.x(tick)
            parts.append(f'<path class="grid" d="M{x} {TOP}V{self.bottom}"/>')
            parts.append(text(x, self.bottom + 17, tick_text(tick, percent), "middle"))
        return "".join(parts)

    def horizontal_grid(self, ticks: Sequence[float], percent: bool = False) -> str:
        """Lines and numbers of the vertical axis."""
        parts = []
        for tick in ticks:
            y = self.y(tick)
            parts.append(f'<path class="grid" d="M{self.left} {y}H{self.width - RIGHT}"/>')
            parts.append(text(self.left - 6, y + 4, tick_text(tick, percent), "end"))
        return "".join(parts)

    def titles(self, x_title: str, y_title: str = "") -> str:
        """What the axes show."""
        middle = (self.left + self.width - RIGHT) / 2
        parts = [text(middle, self.height - 6, x_title, "middle", "axis")]
        if y_title:
            center = (TOP + self.bottom) / 2
            parts.append(
                f'<text class="axis" text-anchor="middle" transform="translate(12 {center})'
                f' rotate(-90)">{escape(y_title)}</text>'
            )
        return "".join(parts)


def text(x: float, y: float, content: str, anchor: str = "start", kind: str = "tick") -> str:
    """A text at a position; `anchor` is start, middle or end."""
    return (
        f'<text class="{kind}" x="{round(x, 1)}" y="{round(y, 1)}" text-anchor="{anchor}">'
        f"{escape(content)}</text>"
    )


def line(axes: Axes, xs: Sequence[float], ys: Sequence[float], kind: str) -> str:
    """A line through points."""
    points = " ".join(f"{axes.x(x)},{axes.y(y)}" for x, y in zip(xs, ys, strict=True))
    return f'<polyline class="line {kind}" points="{points}"/>'


def dot(x: float, y: float, kind: str, label: str) -> str:
    """A point; `label` is shown when the mouse is over it."""
    return f'<circle class="dot {kind}" cx="{x}" cy="{y}" r="3.5">{title(label)}</circle>'


def bar(x: float, y: float, width: float, height: float, kind: str, label: str) -> str:
    """A bar; `label` is shown when the mouse is over it."""
    size = f'width="{round(max(width, 0.5), 1)}" height="{round(max(height, 0.5), 1)}"'
    place = f'x="{round(x, 1)}" y="{round(y, 1)}"'
    return f'<rect class="bar {kind}" {place} {size} rx="2">{title(label)}</rect>'


def title(label: str) -> str:
    """The title of an element."""
    return f"<title>{escape(label)}</title>"


def drawing(axes: Axes, content: str, description: str) -> str:
    """A whole picture; `description` is what a screen reader says."""
    return (
        f'<svg viewBox="0 0 {axes.width} {axes.height}" role="img" aria-label="{escape(description)}">'
        f"{content}</svg>"
    )


def ticks_between(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers from `low` to `high`, about `count` of them."""
    if not high > low:
        return [low]
    step = 10.0 ** math.floor(math.log10((high - low) / count))
    step *= next(factor for factor in (1, 2, 5, 10) if (high - low) / (factor * step) <= count)
    first = math.ceil(low / step - 1e-9)
    return [round(number * step, 10) for number in range(first, math.floor(high / step + 1e-9) + 1)]


def tick_text(value: float, percent: bool) -> str:
    """A number at an axis."""
    return f"{100 * value:g}" if percent else f"{value:,g}"
