"""Start a generation of workers, exchange it for one with a new model, and end all of them.

The supervisor never opens a model itself. It holds the sockets: each worker has its own on the same
port, the kernel distributes connections evenly, and those pending on the socket of a dead worker are
accepted by its successor.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from treetop.errors import TreetopError
from treetop.serve.board import FAILED, LOADED, UNCHANGED, ReloadBoard
from treetop.serve.forking import ending_of, fork, send
from treetop.serve.generation import delay_after
from treetop.serve.signals import Signals, exited

log = logging.getLogger("treetop.serve")
Version = tuple[int, int]


@dataclass
class Started:
    """A generation, as the supervisor sees it."""

    process: int
    pipe: int  # on which it reports
    version: Version | None  # of the model in the folder when it started
    started: float
    received: bytes = b""
    report: dict[str, Any] = field(default_factory=dict)  # empty until it is ready or has failed
    ending: str = ""  # empty while it runs

    def read(self) -> None:
        """Read its report, as far as it has been written."""
        try:
            while piece := os.read(self.pipe, 4096):
                self.received += piece
        except BlockingIOError:
            pass
        line, end, _ = self.received.partition(b"\n")
        if end and not self.report:
            self.report = json.loads(line)


class Supervisor:
    """The parent of all processes of a server."""

    def __init__(
        self,
        sockets: list[socket.socket],
        lead: Callable[[list[socket.socket], int], int],
        version: Callable[[], Version],
        board: ReloadBoard,
        *,
        reload_seconds: float,
        stop_seconds: float,
    ) -> None:
        self.sockets, self.lead, self.version, self.board = sockets, lead, version, board
        self.reload_seconds, self.stop_seconds = reload_seconds, stop_seconds
        self.current: Started | None = None  # serves
        self.next: Started | None = None  # is loading
        self.retired: list[Started] = []
        self.wanted = False  # whether a reload has been asked for
        self.failures, self.due = 0, 0.0

    def run(self, announce: Callable[[dict[str, Any]], None]) -> int:
        """Run until SIGTERM or SIGINT; returns the exit code.

        Calls `announce` with the first report of a generation that is ready.
        """
        self.signals = Signals()
        self.begin()
        served = False
        while True:
            pipes = [self.next.pipe] if self.next else []
            received = self.signals.wait(0.2 if self.next else 1.0, pipes)
            if received & {signal.SIGTERM, signal.SIGINT}:
                return self.stop()
            self.wanted |= signal.SIGHUP in received
            self.reap()
            if self.next is not None and (reason := self.review(self.next)) is not None:
                if reason and not served:
                    self.stop()
                    raise TreetopError(reason)
                if not served:
                    announce(self.close_unused())
                served = True
            if self.next is None and (self.current is None or self.wanted):
                self.begin_if_due()

    def begin_if_due(self) -> None:
        """Start a generation if the model has changed, or if there is none."""
        if self.current is None:
            if time.monotonic() >= self.due:
                self.begin()
            return
        self.wanted = False
        if self.changed():
            self.begin()
        else:
            self.board.finish(UNCHANGED)

    def changed(self) -> bool:
        """Whether the folder holds another model than the one that is served, as far as one can see."""
        try:
            return self.current is None or self.version() != self.current.version
        except OSError:
            return True  # loading it will say what is wrong

    def begin(self) -> None:
        """Start a generation with the model that is in the folder now."""
        self.board.begin()
        try:
            version = self.version()
        except OSError:
            version = None
        reader, writer = os.pipe()

        def run() -> int:
            os.close(reader)
            return self.lead(self.sockets, writer)

        process = fork(self.signals, run, blocked=set())
        os.close(writer)
        os.set_blocking(reader, False)
        self.next = Started(process, reader, version, time.monotonic())

    def review(self, candidate: Started) -> str | None:
        """Whether a generation can take over: None: not yet; empty: it has; else why it cannot."""
        candidate.read()
        if "labels" in candidate.report and not candidate.ending:
            return self.take_over(candidate)
        waited = time.monotonic() - candidate.started
        if candidate.ending:
            reason = candidate.report.get("error") or (
                f"the process that loaded the model ended ({candidate.ending})"
            )
        elif self.current is not None and waited > self.reload_seconds:
            reason = f"the model was not ready after {self.reload_seconds:g} seconds"
            send(candidate.process, signal.SIGKILL)  # its workers exit when they notice
            self.retired.append(candidate)
        else:
            return None
        os.close(candidate.pipe)
        self.next = None
        self.failures += 1
        self.due = time.monotonic() + delay_after(self.failures)
        self.board.finish(FAILED)
        if self.current is not None:
            log.error("Reload failed, still serving the previous model: %s", reason)
        elif self.failures > 1:
            log.error("The model cannot be loaded, trying again: %s", reason)
        return str(reason)

    def take_over(self, candidate: Started) -> str:
        """Let a generation replace the current one, which answers what it has accepted."""
        os.close(candidate.pipe)
        if self.current is not None:
            send(self.current.process, signal.SIGUSR1)
            self.retired.append(self.current)
            log.info("Model reloaded: %s labels", f"{candidate.report['labels']:,}")
        self.current, self.next, self.failures = candidate, None, 0
        self.board.finish(LOADED)
        return ""

    def close_unused(self) -> dict[str, Any]:
        """Close the sockets beyond the number of workers; returns the report of the generation."""
        assert self.current is not None
        count = self.current.report["workers"]
        for unused in self.sockets[count:]:
            unused.close()
        del self.sockets[count:]
        return self.current.report

    def generations(self) -> list[Started]:
        """The current generation, the one that is being tried, and those that are ending."""
        named = [self.current, self.next, *self.retired]
        return [generation for generation in named if generation is not None]

    def reap(self) -> None:
        """Note which generations have ended; the current one will be replaced."""
        for process, status in exited():
            for generation in self.generations():
                if generation.process == process:
                    generation.ending = ending_of(status)
        self.retired = [generation for generation in self.retired if not generation.ending]
        if self.current is not None and self.current.ending:
            log.error("The workers' parent ended (%s), restarting", self.current.ending)
            self.current = None

    def stop(self) -> int:
        """Let all workers answer the requests they have accepted, and return the exit code."""
        log.info("Shutting down")
        for listener in self.sockets:
            listener.close()
        running = [generation for generation in self.generations() if not generation.ending]
        for generation in running:
            send(generation.process, signal.SIGTERM)
        deadline = time.monotonic() + self.stop_seconds
        left = {generation.process for generation in running}
        while left and time.monotonic() < deadline:
            self.signals.wait(0.2)
            left -= {process for process, _ in exited()}
        for process in left:
            send(process, signal.SIGKILL)
        return 0
