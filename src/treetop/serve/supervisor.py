"""Workers that share one address: started, watched, replaced when they die, told to reload.

The supervisor opens the model and then forks. Workers so share the memory of model and libraries, and
a new one is there at once. Each worker has a socket of its own on the same port: the kernel spreads
connections evenly, and those that wait at the socket of a dead worker are taken up by its successor.
"""

from __future__ import annotations

import gc
import logging
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable

from treetop.errors import TreetopError

SIGNALS = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# A worker that ends by itself, or lives less than this many seconds, has failed; so many failures one
# after the other end the server.
SHORT_LIFE, MOST_FAILURES = 2.0, 5
log = logging.getLogger("treetop.serve")


def listen(host: str, port: int, count: int) -> list[socket.socket]:
    """Sockets on one address, one a worker."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sockets: list[socket.socket] = []
    # Without SO_REUSEPORT first: it would let two servers share the port, and nobody would notice.
    with bound(family, host, port, shared=False) as probe:
        port = probe.getsockname()[1]
    for _ in range(count):
        made = bound(family, host, port, shared=count > 1)
        made.listen(1024)
        sockets.append(made)
    return sockets


def bound(family: int, host: str, port: int, shared: bool) -> socket.socket:
    """A socket at an address."""
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if shared:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        made.bind((host, port))
    except OSError as error:
        made.close()
        raise TreetopError(f"cannot listen on {host}:{port} ({error.strerror})") from None
    return made


class Supervisor:
    """A parent of workers, one for each socket."""

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
        self.workers: dict[int, tuple[int, float]] = {}  # process: socket, beginning
        self.failures = 0

    def run(self) -> int:
        """Until told to stop; the exit code."""
        self.signals = Signals()
        gc.freeze()
        for number in range(len(self.sockets)):
            self.start(number)
        while True:
            received = self.signals.wait(1.0)
            if received & {signal.SIGTERM, signal.SIGINT}:
                return self.stop(0)
            if signal.SIGHUP in received and self.reload():
                self.tell(signal.SIGHUP)
            self.replace_dead()
            if self.failures >= MOST_FAILURES:
                log.error("workers keep failing: giving up")
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
            # A SIGHUP waits until the worker can reload.
            signal.pthread_sigmask(signal.SIG_UNBLOCK, set(SIGNALS) - {signal.SIGHUP})
            self.work(self.sockets[number])
            code = 0
        except BaseException:
            log.exception("a worker failed")
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def replace_dead(self) -> None:
        """Start a worker for every one that has ended."""
        for process, status in ended():
            number, begun = self.workers.pop(process, (-1, 0.0))
            if number < 0:
                continue
            self.forget(process)
            failed = os.WIFEXITED(status) or time.monotonic() - begun < SHORT_LIFE
            self.failures = self.failures + 1 if failed else 0
            log.warning("worker %d ended: starting another one", process)
            if self.failures < MOST_FAILURES:
                self.start(number)

    def tell(self, what: int) -> None:
        """Send a signal to all workers."""
        for process in self.workers:
            os.kill(process, what)

    def stop(self, code: int) -> int:
        """Let the workers finish what they accepted."""
        for one in self.sockets:
            one.close()
        self.tell(signal.SIGTERM)
        until = time.monotonic() + self.grace
        while self.workers and time.monotonic() < until:
            self.signals.wait(0.2)
            for process, _ in ended():
                self.workers.pop(process, None)
        self.tell(signal.SIGKILL)
        return code


class Signals:
    """Signals as bytes in a pipe: they wake the supervisor, and none is lost between two looks."""

    def __init__(self) -> None:
        self.out, self.into = os.pipe()
        os.set_blocking(self.out, False)
        os.set_blocking(self.into, False)
        signal.set_wakeup_fd(self.into, warn_on_full_buffer=False)
        for one in SIGNALS:
            signal.signal(one, lambda *_: None)

    def wait(self, seconds: float) -> set[int]:
        """Those that came, or will come within some seconds."""
        if not select.select([self.out], [], [], seconds)[0]:
            return set()
        return set(os.read(self.out, 4096))

    def forget(self) -> None:
        """Signals do again what they do by themselves."""
        signal.set_wakeup_fd(-1)
        for one in SIGNALS:
            signal.signal(one, signal.SIG_DFL)
        os.close(self.out)
        os.close(self.into)


def ended() -> list[tuple[int, int]]:
    """Processes that have ended since the last call, and how."""
    found: list[tuple[int, int]] = []
    while True:
        try:
            process, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if process == 0:
            return found
        found.append((process, status))
