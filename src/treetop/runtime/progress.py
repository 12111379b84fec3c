"""Progress of long-running work: bars with the time left on a terminal, else one line per stage."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

# Long stages write an interim line this often when there is no terminal to show a bar on.
INTERIM_SECONDS = 300.0


class Reporter:
    """Report nothing. Base class of all reporters, and the interface the package relies on."""

    def step(self, name: str, total: int | None = None) -> Callable[[], object]:
        """Start a stage, which ends the previous one.

        Returns a function to call after each of the stage's `total` parts.
        """
        return lambda: None

    def figures(self, text: str) -> None:
        """Show current figures of the stage, such as its loss."""

    def note(self, text: str) -> None:
        """Show a message that the user should read."""

    def close(self) -> None:
        """End the last stage. The reporter may be used again: `step` starts the next stage."""

    def abort(self) -> None:
        """Leave the last stage unfinished, after an error or an interruption."""


class NotesReporter(Reporter):
    """Write notes to standard error, and no progress."""

    def note(self, text: str) -> None:
        """Write one line."""
        sys.stderr.write(f"treetop: {text}\n")


class LineReporter(NotesReporter):
    """Write one line per finished stage to standard error: its name and its duration.

    A stage that runs longer than `INTERIM_SECONDS` also writes how far it is, or, if that is not known,
    how long it has taken so far.
    """

    def __init__(self) -> None:
        self._name = ""
        self._total: int | None = None
        self._done = 0
        self._started = self._written = 0.0
        self._figures = ""
        self._timer: threading.Timer | None = None

    def step(self, name: str, total: int | None = None) -> Callable[[], object]:
        """Start a stage and write the line of the previous one."""
        self.close()
        self._name, self._total, self._done, self._figures = name, total, 0, ""
        self._started = self._written = time.perf_counter()
        self._remind_later()
        return self._advance

    def figures(self, text: str) -> None:
        """Keep the text for the next line."""
        self._figures = text

    def close(self) -> None:
        """Write the line of the last stage."""
        if self._name:
            self._write(duration(time.perf_counter() - self._started))
        self.abort()

    def abort(self) -> None:
        """Write nothing about the unfinished stage."""
        self._name = ""
        if self._timer is not None:
            self._timer.cancel()

    def _remind_later(self) -> None:
        self._timer = threading.Timer(INTERIM_SECONDS, self._remind, (self._started,))
        self._timer.daemon = True
        self._timer.start()

    def _remind(self, started: float) -> None:
        """Write how long a stage has taken, unless its parts tell how far it is."""
        if not self._name or self._started != started:
            return
        if not self._total or self._done >= self._total:
            self._write(f"{duration(time.perf_counter() - started)} so far")
        self._remind_later()

    def _advance(self) -> None:
        self._done += 1
        now = time.perf_counter()
        if self._total and now - self._written >= INTERIM_SECONDS:
            self._written = now
            left = (now - self._started) * (self._total - self._done) / self._done
            self._write(f"{100 * self._done / self._total:.0f}% done, about {duration(left)} left")

    def _write(self, text: str) -> None:
        self.note(", ".join(filter(None, (f"{self._name}: {text}", self._figures))))


class TerminalReporter(Reporter):
    """Draw one progress bar per stage, with elapsed and remaining time, on standard error."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
        from rich.progress import TimeRemainingColumn as Remaining

        self._bars = Progress(
            TextColumn("{task.description:<34}"),
            BarColumn(),
            TimeElapsedColumn(),
            Remaining(),
            TextColumn("{task.fields[figures]}"),
            console=Console(stderr=True),
        )
        self._current: Any = None

    def step(self, name: str, total: int | None = None) -> Callable[[], object]:
        """Start a stage with a bar of its own, which pulses if `total` is not known."""
        self._finish()
        if not self._bars.live.is_started:
            for earlier in self._bars.task_ids:  # drawn above already
                self._bars.update(earlier, visible=False)
            self._bars.start()
        task = self._current = self._bars.add_task(name, total=total, figures="")
        return lambda: self._bars.advance(task)

    def figures(self, text: str) -> None:
        """Show the text to the right of the bar."""
        if self._current is not None:
            self._bars.update(self._current, figures=text)

    def note(self, text: str) -> None:
        """Print a line above the bars."""
        self._bars.console.print(f"treetop: {text}", markup=False, highlight=False)

    def close(self) -> None:
        """Fill the last bar and restore the terminal."""
        self._finish()
        self._bars.stop()

    def abort(self) -> None:
        """Leave the last bar as it is and restore the terminal."""
        self._current = None
        self._bars.stop()

    def _finish(self) -> None:
        if self._current is not None:
            total = self._bars.tasks[self._current].total or 1
            self._bars.update(self._current, total=total, completed=total)
            self._current = None


class TimedReporter(Reporter):
    """Record the duration of each stage in `seconds`, by name; forward everything to `inner`."""

    def __init__(self, inner: Reporter | None = None) -> None:
        self.inner = inner or Reporter()
        self.seconds: dict[str, float] = {}
        self._name, self._since = "", time.perf_counter()

    def step(self, name: str, total: int | None = None) -> Callable[[], object]:
        """Start a stage. Stages of the same name add up."""
        self._stop()
        self._name = name
        return self.inner.step(name, total)

    def figures(self, text: str) -> None:
        """Forward to the inner reporter."""
        self.inner.figures(text)

    def note(self, text: str) -> None:
        """Forward to the inner reporter."""
        self.inner.note(text)

    def close(self) -> None:
        """End the last stage."""
        self._stop()
        self.inner.close()

    def abort(self) -> None:
        """Count the unfinished stage as far as it went."""
        self._stop()
        self.inner.abort()

    def _stop(self) -> None:
        now = time.perf_counter()
        if self._name:
            self.seconds[self._name] = self.seconds.get(self._name, 0.0) + now - self._since
        self._name, self._since = "", now


def duration(seconds: float) -> str:
    """A duration in the units people read: ``4.2 s``, ``3 min 20 s``, ``2 h 05 min``."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return (
        f"{minutes} min {rest:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"
    )


def reporter(quiet: bool = False) -> Reporter:
    """Bars if standard error is a terminal that can draw them, else one line per stage.

    With `quiet`, nothing at all. ``NO_COLOR`` is respected, and ``TERM=dumb`` gets lines.
    """
    if quiet:
        return Reporter()
    draws = sys.stderr.isatty() and os.environ.get("TERM", "") not in ("dumb", "unknown")
    return TerminalReporter() if draws else LineReporter()
