"""Start worker processes, restart those that die, and forward signals to them.

The supervisor loads the model and then forks, so workers share the memory of model and libraries and
start at once. Each worker has its own socket on the same port: the kernel distributes connections
evenly, and those pending on the socket of a dead worker are accepted by its successor.
"""

from __future__ import annotations

import errno
import gc
import logging
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

from treetop.errors import TreetopError

SIGNALS = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# A worker that exits by itself, or lives less than `SHORT_LIFE` seconds, has failed. After
# `MAX_FAILURES` failures in a row the server exits.
SHORT_LIFE, MAX_FAILURES = 2.0, 5
log = logging.getLogger("treetop.serve")


def listen(host: str, port: int, count: int) -> list[socket.socket]:
    """Listening sockets on one address, one per worker."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sockets: list[socket.socket] = []
    # First without SO_REUSEPORT, which would let two servers share the port unnoticed.
    with bind(family, host, port, shared=False) as probe:
        port = probe.getsockname()[1]
    for _ in range(count):
        listener = bind(family, host, port, shared=count > 1)
        listener.listen(1024)
        sockets.append(listener)
    return sockets


def listen_on_path(path: Path, count: int) -> list[socket.socket]:
    """Listening sockets on one Unix domain socket, one per worker: they share its queue."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if path.is_socket() and listener.connect_ex(str(path)) == errno.ECONNREFUSED:
            path.unlink()  # left behind by a server that was killed
        listener.close()
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(str(path))
        listener.listen(1024)
    except OSError as error:
        listener.close()
        raise TreetopError(
            f"cannot listen on {path} ({error.strerror or error}): choose another --uds"
        ) from None
    return [listener, *(listener.dup() for _ in range(count - 1))]


def bind(family: int, host: str, port: int, shared: bool) -> socket.socket:
    """A socket bound to an address; `shared`: several sockets may have the same port."""
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if shared:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        raise TreetopError(
            f"cannot listen on {host}:{port} ({error.strerror}): choose another --port"
        ) from None
    return bound


class Supervisor:
    """The parent process of the workers, one per socket."""

    def __init__(
        self,
        sockets: list[socket.socket],
        work: Callable[[socket.socket], None],
        reload: Callable[[], bool],
        forget: Callable[[int], None],
        grace: float,
    ) -> None:
        self.sockets, self.work, self.reload, self.forget = sockets, work, reload, forget
        self.grace = grace
        self.workers: dict[int, tuple[int, float]] = {}  # process id: number of the socket, start
        self.failures = 0

    def run(self) -> int:
        """Run until SIGTERM or SIGINT; returns the exit code."""
        self.signals = Signals()
        gc.freeze()
        for number in range(len(self.sockets)):
            self.start(number)
        while True:
            received = self.signals.wait(1.0)
            if received & {signal.SIGTERM, signal.SIGINT}:
                return self.stop(0)
            if signal.SIGHUP in received and self.reload():
                self.send(signal.SIGHUP)
            self.replace_dead()
            if self.failures >= MAX_FAILURES:
                log.error("Workers keep failing, shutting down")
                return self.stop(1)

    def start(self, number: int) -> None:
        """Fork a worker for a socket."""
        sys.stdout.flush()
        sys.stderr.flush()
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        process = os.fork()
        if process:
            self.workers[process] = (number, time.monotonic())
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
            return
        code = 1
        try:
            self.signals.forget()
            for other in self.sockets[:number] + self.sockets[number + 1 :]:
                other.close()
            # SIGHUP stays blocked until the worker can handle it.
            signal.pthread_sigmask(signal.SIG_UNBLOCK, set(SIGNALS) - {signal.SIGHUP})
            self.work(self.sockets[number])
            code = 0
        except BaseException:
            log.exception("Worker [%d] failed", os.getpid())
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def replace_dead(self) -> None:
        """Restart every worker that has exited."""
        for process, status in exited():
            number, started = self.workers.pop(process, (-1, 0.0))
            if number < 0:
                continue
            self.forget(process)
            failed = os.WIFEXITED(status) or time.monotonic() - started < SHORT_LIFE
            self.failures = self.failures + 1 if failed else 0
            log.warning("Worker [%d] exited, restarting", process)
            if self.failures < MAX_FAILURES:
                self.start(number)

    def send(self, number: int) -> None:
        """Send a signal to all workers."""
        for process in self.workers:
            os.kill(process, number)

    def stop(self, code: int) -> int:
        """Let the workers answer the requests they have accepted, and return the exit code."""
        log.info("Shutting down")
        for listener in self.sockets:
            listener.close()
        self.send(signal.SIGTERM)
        deadline = time.monotonic() + self.grace
        while self.workers and time.monotonic() < deadline:
            self.signals.wait(0.2)
            for process, _ in exited():
                self.workers.pop(process, None)
        self.send(signal.SIGKILL)
        return code


class Signals:
    """Signals as bytes in a pipe: they interrupt `wait`, and none is lost between two calls."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)
        os.set_blocking(self.writer, False)
        signal.set_wakeup_fd(self.writer, warn_on_full_buffer=False)
        for number in SIGNALS:
            signal.signal(number, lambda *_: None)

    def wait(self, seconds: float) -> set[int]:
        """The signals received since the last call, or else within `seconds`."""
        if not select.select([self.reader], [], [], seconds)[0]:
            return set()
        return set(os.read(self.reader, 4096))

    def forget(self) -> None:
        """Restore the default signal handlers."""
        signal.set_wakeup_fd(-1)
        for number in SIGNALS:
            signal.signal(number, signal.SIG_DFL)
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
