"""Calls that run in a background thread while this one does other work."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

Result = TypeVar("Result")


class Later(Generic[Result]):
    """A call that runs in a background thread; `result` waits for it."""

    def __init__(self, work: Callable[[], Result]) -> None:
        self._results: list[Result] = []
        self._failure: BaseException | None = None

        def run() -> None:
            try:
                self._results.append(work())
            except BaseException as failure:
                self._failure = failure

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()

    @property
    def runs(self) -> bool:
        """Whether the call has not ended yet."""
        return self._thread.is_alive()

    def wait(self, seconds: float) -> None:
        """Wait for the call to end, but not longer than some seconds."""
        self._thread.join(seconds)

    def check(self) -> None:
        """Raise the error of the call if it has already failed."""
        if self._failure is not None:
            raise self._failure

    def result(self) -> Result:
        """Wait for the call to end; return its result or raise its error."""
        self._thread.join()
        self.check()
        return self._results[0]


@contextmanager
def short_turns() -> Iterator[None]:
    """Make threads hand over the interpreter lock ten times as often.

    A thread that imports modules holds the lock for its whole turn, and every thread that starts
    meanwhile waits for the end of that turn.
    """
    _turns.begin()
    try:
        yield
    finally:
        _turns.end()


class Turns:
    """How often threads hand over the interpreter lock: a setting that all of them share."""

    def __init__(self) -> None:
        self.lock, self.users, self.usual = threading.Lock(), 0, 0.0

    def begin(self) -> None:
        """Shorten the turns, unless another thread has."""
        with self.lock:
            self.users += 1
            if self.users == 1:
                self.usual = sys.getswitchinterval()
                sys.setswitchinterval(self.usual / 10)

    def end(self) -> None:
        """Restore the usual turns, if no other thread needs short ones."""
        with self.lock:
            self.users -= 1
            if self.users == 0:
                sys.setswitchinterval(self.usual)


_turns = Turns()
