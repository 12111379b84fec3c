"""Run a command: its exit code, and one line for every error that a user can cause."""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TextIO

import typer

from treetop.cli.console import Console
from treetop.cli.mistakes import InterruptedRunError, explain_usage_error, print_error
from treetop.cli.usage import with_verbosity
from treetop.errors import TreetopError

INTERRUPTED = 130
# What ends a program with its shell or its machine; without a handler, nothing would be cleaned up.
ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


def run_app(app: typer.Typer, arguments: Sequence[str], program: str) -> int:
    """Run a command and return its exit code; an error a user can cause becomes one line on stderr."""
    with termination_as_interrupt() as received:
        code = answered(app, arguments, program)
    return 128 + received[0] if received and code == INTERRUPTED else code


@contextmanager
def termination_as_interrupt() -> Iterator[list[int]]:
    """Clean up after SIGTERM and SIGHUP as after Ctrl-C, unless they are ignored or handled already.

    Yields a list, to which the number of such a signal is added.
    """
    received: list[int] = []

    def stop(number: int, _: object) -> None:
        received.append(number)
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():  # only that one has handlers
        yield received
        return
    own = [number for number in ENDING if signal.getsignal(number) == signal.SIG_DFL]
    for number in own:
        signal.signal(number, stop)
    try:
        yield received
    finally:
        for number in own:
            signal.signal(number, signal.SIG_DFL)


def answered(app: typer.Typer, arguments: Sequence[str], program: str) -> int:
    """Run a command, whose errors are answered; `run_app` handles signals on top."""
    console = Console(command=(*program.split(), *arguments))
    # Flags are looked up here too, for what happens before or after they are parsed.
    flags = set(arguments)
    quiet, verbose = bool(flags & {"-q", "--quiet"}), bool(flags & {"-v", "--verbose"})
    try:
        with renamed_settings_as_notes(with_verbosity(console, False, quiet)):
            code = app(list(arguments), prog_name=program, obj=console, standalone_mode=False)
        if code == INTERRUPTED:
            raise KeyboardInterrupt
        return code if isinstance(code, int) else 0
    except (BrokenPipeError, SystemExit) as error:
        # typer turns the former into the latter.
        if not isinstance(error, BrokenPipeError) and not isinstance(
            error.__context__, BrokenPipeError
        ):
            raise
        print_error("standard output was closed before everything was written")
        forget_output()
        return 2
    except (Exception, KeyboardInterrupt) as error:
        if verbose and isinstance(error, TreetopError | OSError):
            traceback.print_exc()
        return answer(error)


def forget_output() -> None:
    """Let the interpreter flush standard output, whose reader is gone, without an error."""
    with suppress(OSError, ValueError):  # it may be none of the system's files
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def answer(error: Any) -> int:
    """Print the line about an error and return the exit code; an unexpected error is raised again."""
    if isinstance(error, TreetopError):
        print_error(error)
    elif isinstance(error, InterruptedRunError):
        print_error(error)
        return INTERRUPTED
    elif isinstance(error, KeyboardInterrupt | typer.Abort):
        print_error("stopped; nothing was left half-written")
        return INTERRUPTED
    elif isinstance(error, MemoryError):
        print_error("out of memory: try --preset fast, or fewer features (--set max_features=…)")
    elif isinstance(error, OSError):
        reason = error.strerror or str(error)
        print_error(reason if error.filename is None else f"{error.filename}: {reason}")
    elif type(error).__name__ == "NoArgsIsHelpError":
        error.show()
    elif hasattr(error, "format_message"):  # raised by typer, whose classes differ among its versions
        print(explain_usage_error(error), file=sys.stderr)
    else:
        raise error
    return 2


@contextmanager
def renamed_settings_as_notes(console: Console) -> Iterator[None]:
    """Show warnings about old setting names as notes, each once."""
    with warnings.catch_warnings():
        show_others, noted = warnings.showwarning, set[str]()

        def show(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if category.__name__ != "RenamedSettingWarning":
                show_others(message, category, filename, lineno, file, line)
            elif str(message) not in noted:
                noted.add(str(message))
                console.note(str(message))

        warnings.showwarning = show
        yield
