"""What a long run says about itself: steps, with a bar and the time left on a terminal only."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any


class Reporter:
    """Says nothing. Also the interface: what the package asks of a reporter."""

    def step(self, name: str, total: int | None = None) -> Callable[[], Any]:
        """Begin a step of `total` parts, which ends the one before; call the result after a part."""
        return lambda: None

    def figures(self, text: str) -> None:
        """Show how the step is doing, beside its bar."""

    def note(self, text: str) -> None:
        """Tell something the user should know."""

    def close(self) -> None:
        """End the last step."""


class NotesReporter(Reporter):
    """No bars, but notes on standard error: for output that goes to a file."""

    def note(self, text: str) -> None:
        """Print a line."""
        sys.stderr.write(f"treetop: {text}\n")


class TerminalReporter(Reporter):
    """Bars on standard error."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
        from rich.progress import TimeRemainingColumn as Remaining

        figures = TextColumn("{task.fields[figures]}")
        columns = (
            TextColumn("{task.description:<34}"),
            BarColumn(),
            TimeElapsedColumn(),
            Remaining(),
            figures,
        )
        self.bars = Progress(*columns, console=Console(stderr=True))
        self.bars.start()
        self.current: Any = None

    def step(self, name: str, total: int | None = None) -> Callable[[], Any]:
        """Begin a step."""
        self._finish()
        task = self.current = self.bars.add_task(name, total=total or 1, figures="")
        return lambda: self.bars.advance(task)

    def figures(self, text: str) -> None:
        """Show beside the bar."""
        if self.current is not None:
            self.bars.update(self.current, figures=text)

    def note(self, text: str) -> None:
        """Print above the bars."""
        self.bars.console.print(f"treetop: {text}", markup=False, highlight=False)

    def _finish(self) -> None:
        if self.current is not None:
            total = self.bars.tasks[self.current].total
            self.bars.update(self.current, completed=total)

    def close(self) -> None:
        """End the last step and leave the terminal as it was."""
        self._finish()
        self.bars.stop()


class TimedReporter(Reporter):
    """Remembers how long each step took; passes everything on to another reporter."""

    def __init__(self, inner: Reporter | None = None) -> None:
        self.inner = inner or Reporter()
        self.seconds: dict[str, float] = {}
        self._name, self._since = "", time.perf_counter()

    def step(self, name: str, total: int | None = None) -> Callable[[], Any]:
        """Begin a step."""
        self._stop()
        self._name = name
        return self.inner.step(name, total)

    def figures(self, text: str) -> None:
        """Pass on."""
        self.inner.figures(text)

    def note(self, text: str) -> None:
        """Pass on."""
        self.inner.note(text)

    def _stop(self) -> None:
        now = time.perf_counter()
        if self._name:
            self.seconds[self._name] = self.seconds.get(self._name, 0.0) + now - self._since
        self._name, self._since = "", now

    def close(self) -> None:
        """End the last step."""
        self._stop()
        self.inner.close()


def reporter() -> Reporter:
    """Bars if standard error is a terminal, else only notes."""
    return TerminalReporter() if sys.stderr.isatty() else NotesReporter()
