"""Work shared among threads.

Kernels run without the interpreter lock, so plain threads are enough. Results never depend on the
number of threads: a task knows all it needs, and results come back in the order of the tasks.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, Generic, TypeVar

import numpy as np

Task = TypeVar("Task")
Result = TypeVar("Result")
# The flags of all runs under way: an interrupt reaches only the main thread, but is meant for all.
RUNNING: list[np.ndarray] = []


def thread_count(threads: int | None) -> int:
    """`threads`, or every core this process may use when None."""
    if threads is not None:
        return max(1, threads)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def ranges(count: int, parts: int) -> list[tuple[int, int]]:
    """`count` items as at most `parts` contiguous, nearly equal, non-empty ranges."""
    parts = max(1, min(parts, count))
    edges = [count * part // parts for part in range(parts + 1)]
    return list(zip(edges[:-1], edges[1:], strict=True))


def run(
    work: Callable[[Task, np.ndarray], Result],
    tasks: Sequence[Task],
    threads: int,
    advance: Callable[[], Any] | None = None,
) -> list[Result]:
    """``[work(task, cancel) for task in tasks]`` on several threads.

    `cancel` is an array of one byte that becomes 1 when the run is interrupted; a long kernel looks
    at it now and then. The calling thread only waits, so Ctrl-C is noticed at once.
    """
    results: list[Any] = [None] * len(tasks)
    cancel = np.zeros(1, np.uint8)
    failures: list[BaseException] = []
    remaining = iter(range(len(tasks)))
    lock = threading.Lock()

    def next_position() -> int | None:
        with lock:
            return None if cancel[0] else next(remaining, None)

    def worker() -> None:
        try:
            while (position := next_position()) is not None:
                results[position] = work(tasks[position], cancel)
                if advance is not None:
                    advance()
        except BaseException as failure:
            failures.append(failure)
            cancel[0] = 1

    RUNNING.append(cancel)
    try:
        if threads == 1 and threading.current_thread() is not threading.main_thread():
            worker()  # Ctrl-C does not come here, and a thread costs as much as a small task
        else:
            wait_for([threading.Thread(target=worker) for _ in range(min(threads, len(tasks)))])
    finally:
        # by identity: arrays compare element by element
        RUNNING[:] = [other for other in RUNNING if other is not cancel]
    if failures:
        raise failures[0]
    return results


def over_ranges(
    work: Callable[[tuple[int, int], np.ndarray], Result], count: int, threads: int
) -> list[Result]:
    """`run` on ranges of `count` items; one thread's share is done at once, without starting a thread.

    For a few items the start would cost more than the work.
    """
    if threads > 1:
        return run(work, ranges(count, threads), threads)
    return [work((0, count), np.zeros(1, np.uint8))]


@contextmanager
def short_turns() -> Iterator[None]:
    """Let threads take turns at the interpreter lock ten times as often.

    While another thread imports modules, which takes the lock for itself, every start of a worker
    would wait for the end of a turn.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(before / 10)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


@cache
def c_library() -> Any:
    """The C library that this process runs on, if it can be asked."""
    try:
        return ctypes.CDLL(None)
    except (OSError, TypeError):
        return None


def give_back() -> None:
    """Hand freed memory back to the system: glibc keeps what a thread has freed for that thread.

    After work on many threads that is more than a gigabyte, and the next work asks for as much again.
    """
    trim = getattr(c_library(), "malloc_trim", None)  # glibc's alone
    if trim is not None:
        trim(0)


class Later(Generic[Result]):
    """A call that has begun in a thread of its own; `result` waits for it."""

    def __init__(self, work: Callable[[], Result]) -> None:
        self._made: list[Result] = []
        self._failure: BaseException | None = None

        def run() -> None:
            try:
                self._made.append(work())
            except BaseException as failure:
                self._failure = failure

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raise the error if the call has failed already: what comes next would be in vain."""
        if self._failure is not None:
            raise self._failure

    def result(self) -> Result:
        """What the call returned, or the error it raised."""
        self._thread.join()
        self.check()
        return self._made[0]


def wait_for(crew: list[threading.Thread]) -> None:
    """Start threads and wait for their end; on an interrupt tell all work to stop, nested work too."""
    for member in crew:
        member.start()
    try:
        for member in crew:
            member.join()
    except BaseException:
        for cancel in RUNNING:
            cancel[0] = 1
        for member in crew:
            member.join()
        raise
