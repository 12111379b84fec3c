"""Progress in notebooks, and the choice of a reporter for ``verbose=True``."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from html import escape
from typing import Any

from treetop.runtime import progress
from treetop.runtime.progress import Reporter
from treetop.runtime.runtime import Runtime

# Seconds between updates of the page: each is a message to the browser.
INTERVAL = 0.2


@dataclass(frozen=True)
class ProgressRow:
    """A step as it is shown: its parts done so far, and the seconds it has taken."""

    name: str
    total: int
    started: float
    done: int = 0
    seconds: float = 0.0
    figures: str = ""
    finished: bool = False

    def html(self) -> str:
        """Write the row of the table: name, bar, times and metrics."""
        bar = ""
        if self.total > 1 or not self.finished:
            filled = self.total if self.finished else self.done
            # Without `value` a browser shows that work is going on, but not how much is left.
            value = f'value="{filled}" ' if self.total > 1 or self.finished else ""
            bar = f'<progress {value}max="{self.total}" style="width: 12em"></progress>'
        left = ""
        if self.done and not self.finished:
            left = f", {seconds_text(self.seconds * (self.total - self.done) / self.done)} left"
        cells = (escape(self.name), bar, seconds_text(self.seconds) + left, escape(self.figures))
        return "<tr>" + "".join(f'<td style="text-align:left">{c}</td>' for c in cells) + "</tr>"


class NotebookReporter(Reporter):
    """Shows the steps of a training in the output of a notebook cell, updated in place.

    Parameters
    ----------
    display : callable
        ``IPython.display.display`` or a function like it: called with an object that has
        ``_repr_html_`` and ``display_id=True``, it returns a handle with a method ``update``.
    """

    def __init__(self, display: Callable[..., Any]) -> None:
        self.rows: list[ProgressRow] = []
        self.notes: list[str] = []
        self._handle: Any = None
        self._display, self._shown_at = display, 0.0

    def step(self, name: str, total: int | None = None) -> Callable[[], object]:
        """Begin a step of `total` parts; the function returned marks a part as done."""
        self._finish()
        number = len(self.rows)
        self.rows.append(ProgressRow(name, total or 1, time.perf_counter()))
        self._show()

        def advance() -> None:
            self._change(number, done=self.rows[number].done + 1)

        return advance

    def figures(self, text: str) -> None:
        """Show metrics next to the bar of the current step."""
        if self.rows:
            self._change(len(self.rows) - 1, figures=text)

    def note(self, text: str) -> None:
        """Show a message below the steps."""
        self.notes.append(text)
        self._show()

    def close(self) -> None:
        """End the last step."""
        self._finish()

    def _change(self, number: int, **values: Any) -> None:
        row = self.rows[number]
        if row.finished:
            return
        now = time.perf_counter()
        self.rows[number] = replace(row, **values, seconds=now - row.started)
        if now - self._shown_at >= INTERVAL:
            self._show()

    def _finish(self) -> None:
        if self.rows and not self.rows[-1].finished:
            self._change(len(self.rows) - 1, finished=True)
            self._show()

    def _show(self) -> None:
        self._shown_at = time.perf_counter()
        if self._handle is None:
            self._handle = self._display(self, display_id=True)
        else:
            self._handle.update(self)

    def _repr_html_(self) -> str:
        notes = "".join(f"<p>treetop: {escape(note)}</p>" for note in self.notes)
        return f"<table>{''.join(row.html() for row in self.rows)}</table>{notes}"

    def __repr__(self) -> str:
        return "\n".join(f"{row.name}: {seconds_text(row.seconds)}" for row in self.rows)


def seconds_text(seconds: float) -> str:
    """Format a duration: ``0.4 s`` or ``2 min 05 s``."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s"


def notebook_display() -> Callable[..., Any] | None:
    """Return IPython's display function if this process is the kernel of a notebook, else None."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if not hasattr(shell, "kernel"):
        return None
    from IPython.display import display  # type: ignore[import-not-found]

    found: Callable[..., Any] = display
    return found


def progress_reporter() -> Reporter:
    """Make the reporter that suits this process: notebook, terminal, or lines of text."""
    display = notebook_display()
    return progress.reporter() if display is None else NotebookReporter(display)


@contextmanager
def reporting(runtime: Runtime) -> Iterator[Runtime]:
    """Provide a runtime that shows progress if `runtime` is verbose.

    A reporter that the runtime already has is used as it is, and left open: whoever made it closes it.
    """
    if not runtime.verbose or type(runtime.reporter) is not Reporter:
        yield runtime
        return
    reporter = progress_reporter()
    try:
        yield runtime.changed(reporter=reporter)
    finally:
        reporter.close()
