"""Child processes of the supervisor and of generations."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress

from treetop.serve.signals import SIGNALS, Signals

log = logging.getLogger("treetop.serve")


def fork(signals: Signals, run: Callable[[], int], blocked: set[int]) -> int:
    """Run a function in a child process, which exits with its result; returns the child's id.

    `signals` are those of this process. The child begins with the default handlers, and with the
    signals in `blocked` blocked until it can handle them.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    process = os.fork()
    if process:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        return process
    code = 1
    try:
        signals.forget()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, set(SIGNALS) - blocked)
        code = run()
    except BaseException:
        log.exception("Process [%d] failed", os.getpid())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def ending_of(status: int) -> str:
    """What ended a child process, in words: its signal or its exit code."""
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    return f"exit code {os.waitstatus_to_exitcode(status)}"


def send(process: int, number: int) -> None:
    """Send a signal to a process, unless it has been reaped."""
    with suppress(ProcessLookupError):
        os.kill(process, number)
