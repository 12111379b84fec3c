"""Signals and the ends of child processes, as a loop can wait for them."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Sequence

# SIGHUP asks the supervisor for a reload, SIGUSR1 tells a generation and its workers to retire.
SIGNALS = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1)


class Signals:
    """Signals as bytes in a pipe: they interrupt `wait`, and none is lost between two calls."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)
        os.set_blocking(self.writer, False)
        signal.set_wakeup_fd(self.writer, warn_on_full_buffer=False)
        for number in SIGNALS:
            signal.signal(number, lambda *_: None)

    def wait(self, seconds: float, pipes: Sequence[int] = ()) -> set[int]:
        """The signals since the last call, or within `seconds`; returns early if a pipe is readable."""
        if self.reader not in select.select([self.reader, *pipes], [], [], seconds)[0]:
            return set()
        return set(os.read(self.reader, 4096))

    def forget(self) -> None:
        """Restore the default signal handlers, in a child process; only the supervisor hears SIGHUP."""
        signal.set_wakeup_fd(-1)
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN if number == signal.SIGHUP else signal.SIG_DFL)
        os.close(self.reader)
        os.close(self.writer)


def exited() -> list[tuple[int, int]]:
    """Id and status of the child processes that have exited since the last call."""
    processes: list[tuple[int, int]] = []
    while True:
        try:
            process, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return processes
        if process == 0:
            return processes
        processes.append((process, status))
