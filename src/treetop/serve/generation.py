"""A generation: the workers that serve one model, and the process that loaded it and started them.

The process loads the model and then forks, so workers share the memory of model and libraries and
start at once. It replaces workers that die or hang. A model that cannot be loaded, or that its
workers do not survive, harms only its own generation: the previous one keeps serving.
"""

from __future__ import annotations

import gc
import json
import logging
import math
import os
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from treetop.errors import TreetopError
from treetop.serve.board import Heartbeats
from treetop.serve.forking import ending_of, fork, send
from treetop.serve.signals import Signals, exited

log = logging.getLogger("treetop.serve")
# A worker that exits by itself, or lives less than `SHORT_LIFE` seconds, has failed. After the second
# failure in a row its successor starts later, and each further one after twice the time.
SHORT_LIFE = 2.0
FIRST_DELAY, LONGEST_DELAY = 0.5, 30.0
STARTING_TICK, TICK = 0.05, 0.5
# Connections that wait to be accepted; the system may allow fewer. If there are more, it drops some.
BACKLOG = 4096


@dataclass(frozen=True)
class Limits:
    """Seconds after which workers are killed."""

    starting: float  # without being ready
    silent: float  # without a heartbeat
    stopping: float  # after SIGTERM
    retiring: float  # after the next generation has taken over, until SIGTERM


class Generation:
    """The process that starts the workers of one model, one per socket, and replaces them."""

    def __init__(
        self,
        sockets: list[socket.socket],
        work: Callable[[socket.socket, Callable[[], None]], None],
        forget: Callable[[int], None],
        limits: Limits,
        parent: int,
    ) -> None:
        self.parent = parent
        self.sockets, self.work, self.forget, self.limits = sockets, work, forget, limits
        self.heartbeats = Heartbeats(len(sockets))
        self.workers: dict[int, tuple[int, float]] = {}  # process id: number of the socket, start
        self.due: dict[int, float] = {}  # number of the socket: when to start its next worker
        self.failures = 0
        self.retire_until = math.inf
        self.checked = 0.0  # when the heartbeats were looked at

    def run(self, announce: Callable[[], None]) -> int:
        """Run until told to stop, or until the last worker has retired; returns the exit code.

        Calls `announce` when all workers are ready.
        """
        self.signals = Signals()
        gc.freeze()
        for listener in self.sockets:
            listener.listen(BACKLOG)
        for number in range(len(self.sockets)):
            self.start(number)
        self.wait_until_ready()
        announce()
        while self.workers or self.due:
            received = self.signals.wait(TICK)
            if self.must_stop(received) or time.monotonic() > self.retire_until:
                break
            if signal.SIGUSR1 in received:
                self.retire()
            self.reap()
            self.start_due()
            self.kill_silent()
        return self.stop()

    def wait_until_ready(self) -> None:
        """Wait for the first heartbeat of each worker; raise if one of them ends."""
        while not all(map(self.heartbeats.has_begun, range(len(self.sockets)))):
            if self.must_stop(self.signals.wait(STARTING_TICK)):
                raise TreetopError("stopped while its workers were starting")
            if endings := self.reap():
                raise TreetopError(f"a worker ended while it was starting ({endings[0]})")

    def must_stop(self, received: set[int]) -> bool:
        """Whether a signal says so, or the supervisor has exited."""
        return bool(received & {signal.SIGTERM, signal.SIGINT}) or os.getppid() != self.parent

    def retire(self) -> None:
        """Let the workers answer on the connections they have, and replace none of them any more."""
        self.send(signal.SIGUSR1)
        self.retire_until = min(self.retire_until, time.monotonic() + self.limits.retiring)
        self.due.clear()

    def start_due(self) -> None:
        """Replace workers that have exited, when it is time."""
        for number in [number for number, when in self.due.items() if when <= time.monotonic()]:
            self.start(number)

    def start(self, number: int) -> None:
        """Fork a worker for a socket."""
        self.due.pop(number, None)
        self.heartbeats.clear(number)

        def run() -> int:
            for other in self.sockets[:number] + self.sockets[number + 1 :]:
                other.close()
            self.work(self.sockets[number], lambda: self.heartbeats.beat(number))
            return 0

        process = fork(self.signals, run, blocked={signal.SIGUSR1})
        self.workers[process] = (number, time.monotonic())

    def reap(self) -> list[str]:
        """Note which workers have exited, and when to replace them; returns how they ended."""
        endings, now = [], time.monotonic()
        for process, status in exited():
            number, started = self.workers.pop(process)
            self.forget(process)
            endings.append(ending_of(status))
            if self.retire_until < math.inf:
                continue
            failed = os.WIFEXITED(status) or now - started < SHORT_LIFE
            self.failures = self.failures + 1 if failed else 0
            delay = delay_after(self.failures)
            after = f" in {delay:g} seconds" if delay else ""
            log.warning("Worker [%d] ended (%s), restarting%s", process, endings[-1], after)
            self.due[number] = now + delay
        return endings

    def kill_silent(self) -> None:
        """Kill workers that have shown no sign of work for too long; they are replaced then."""
        now, last = time.monotonic(), self.checked
        self.checked = now
        if now - last > 4 * TICK:  # this process was stopped or starved, and so were they
            for number, _ in self.workers.values():
                self.heartbeats.forgive(number)
            return
        for process, (number, started) in self.workers.items():
            begun = self.heartbeats.has_begun(number)
            silent = self.heartbeats.age(number) if begun else now - started
            if silent > (self.limits.silent if begun else self.limits.starting):
                log.error("Worker [%d] has not responded for %.0f seconds: killing it", process, silent)
                send(process, signal.SIGKILL)

    def send(self, number: int) -> None:
        """Send a signal to all workers."""
        for process in self.workers:
            send(process, number)

    def stop(self) -> int:
        """Let the workers answer the requests they have accepted, and return the exit code."""
        for listener in self.sockets:
            listener.close()
        self.send(signal.SIGTERM)
        self.retire_until = 0.0  # replace none of them
        deadline = time.monotonic() + self.limits.stopping
        while self.workers and time.monotonic() < deadline:
            self.signals.wait(0.2)
            self.reap()
        self.send(signal.SIGKILL)
        return 0


def delay_after(failures: int) -> float:
    """Seconds until a worker is replaced after so many failures in a row."""
    return 0.0 if failures < 2 else min(LONGEST_DELAY, FIRST_DELAY * 2 ** min(failures - 2, 10))


def write_report(pipe: int, **facts: object) -> None:
    """Tell the supervisor what became of a generation, on one line of JSON."""
    with suppress(BrokenPipeError):  # the supervisor has exited
        os.write(pipe, json.dumps(facts).encode() + b"\n")
