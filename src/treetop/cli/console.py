"""What a command prints, and where: results and messages on stdout, notes and progress on stderr."""

from __future__ import annotations

import json
import platform
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from treetop import __version__
from treetop.runtime.progress import TimedReporter, duration, reporter

# Distributions whose versions matter when a result is to be reproduced.
DISTRIBUTIONS = ("numpy", "scipy", "numba", "torch", "transformers")


@dataclass(frozen=True)
class Console:
    """Output of one run of the command line.

    `verbosity` is negative with ``--quiet`` and positive with ``--verbose``. `command` holds the
    program and its arguments as the user typed them.
    """

    verbosity: int = 0
    command: tuple[str, ...] = ("treetop",)

    @property
    def quiet(self) -> bool:
        """Whether only results and errors are printed."""
        return self.verbosity < 0

    @property
    def verbose(self) -> bool:
        """Whether versions, timings and tracebacks are printed."""
        return self.verbosity > 0

    def result(self, text: str) -> None:
        """Print a result on stdout."""
        print(text, flush=True)

    def json(self, value: object) -> None:
        """Print a result on stdout as one JSON document."""
        print(json.dumps(value, indent=2, ensure_ascii=False), flush=True)

    def message(self, text: str) -> None:
        """Print on stdout what is not a result: what was done, what to do next."""
        if not self.quiet:
            print(text, flush=True)

    def note(self, text: str) -> None:
        """Print one line on stderr that the user should read."""
        if not self.quiet:
            print(f"treetop: {text}", file=sys.stderr, flush=True)

    @contextmanager
    def progress(self) -> Iterator[TimedReporter]:
        """A reporter of stages; with ``--verbose``, a table of their durations follows."""
        if self.verbose:
            self.note(versions())
        report = TimedReporter(reporter(self.quiet))
        try:
            yield report
        except BaseException:
            report.abort()
            raise
        report.close()
        if self.verbose:
            total = sum(report.seconds.values())
            for name, seconds in [*report.seconds.items(), ("total", total)]:
                print(f"  {name:<34} {duration(seconds):>12}", file=sys.stderr)

    def command_with(self, *options: str, without: str = "") -> str:
        """The command as the user typed it, quoted for a shell, with `options` added if missing."""
        kept = [argument for argument in self.command if argument != without]
        return shlex.join([*kept, *(option for option in options if option not in kept)])


def versions() -> str:
    """Versions of treetop, Python and the installed packages that training depends on."""
    from importlib import metadata

    parts = [f"treetop {__version__}", f"Python {platform.python_version()}"]
    for name in DISTRIBUTIONS:
        try:
            parts.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    return ", ".join(parts)


def shell_command(*arguments: object) -> str:
    """A treetop command, quoted for a shell; empty arguments are left out."""
    return shlex.join(["treetop", *(str(argument) for argument in arguments if argument != "")])
