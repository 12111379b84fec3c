"""Threads: tasks that run in parallel, and calls that run in the background.

Kernels release the interpreter lock, so plain threads run in parallel. Results do not depend on the
number of threads: tasks are independent, and results are returned in the order of the tasks.
"""

from __future__ import annotations

import ctypes
import math
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

Item = TypeVar("Item")
Result = TypeVar("Result")
# Cancel flags of all active runs: an interrupt reaches only the main thread but must stop all of them.
RUNNING: list[np.ndarray] = []


def thread_count(threads: int | None) -> int:
    """Return `threads`, or if it is None the number of cores that this process may use."""
    if threads is not None:
        return max(1, threads)
    affinity = getattr(os, "sched_getaffinity", None)  # not on macOS and Windows
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return min(cores, container_cores() or cores)


@cache
def container_cores(file: Path = Path("/sys/fs/cgroup/cpu.max")) -> int | None:
    """Return the CPU limit of this container (``docker run --cpus``), rounded up; None without one.

    The kernel enforces the limit by pausing all threads, so threads beyond it only wait.
    """
    try:
        quota, period = file.read_text("ascii").split()
        return None if quota == "max" else max(1, math.ceil(int(quota) / int(period)))
    except (OSError, ValueError):
        return None


def ranges(count: int, parts: int) -> list[tuple[int, int]]:
    """Split `range(count)` into at most `parts` non-empty (start, end) pairs of nearly equal length."""
    parts = max(1, min(parts, count))
    edges = [count * part // parts for part in range(parts + 1)]
    return list(zip(edges[:-1], edges[1:], strict=True))


def run(
    work: Callable[[Item, np.ndarray], Result],
    tasks: Sequence[Item],
    threads: int,
    advance: Callable[[], object] | None = None,
) -> list[Result]:
    """Return ``[work(task, cancel) for task in tasks]``, computed on several threads.

    `cancel` is a uint8 array of shape (1,) that is set to 1 when the run is interrupted; long kernels
    check it regularly. `advance` is called after each task. The calling thread only waits, so that it
    reacts to Ctrl-C immediately.
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
            # Only the main thread receives Ctrl-C, and starting a thread takes as long as a small task.
            worker()
        else:
            run_threads([threading.Thread(target=worker) for _ in range(min(threads, len(tasks)))])
    finally:
        # By identity, because == compares arrays element by element.
        RUNNING[:] = [other for other in RUNNING if other is not cancel]
    if failures:
        raise failures[0]
    return results


def over_ranges(
    work: Callable[[tuple[int, int], np.ndarray], Result], count: int, threads: int
) -> list[Result]:
    """Like `run`, with one range of `count` items per thread as the tasks.

    A single range is done by the calling thread: for few items, starting a thread takes longer.
    """
    if threads > 1:
        return run(work, ranges(count, threads), threads)
    return [work((0, count), np.zeros(1, np.uint8))]


@contextmanager
def short_turns() -> Iterator[None]:
    """Make threads hand over the interpreter lock ten times as often.

    A thread that imports modules holds the lock for its whole turn, and every thread that starts
    meanwhile waits for the end of that turn.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(before / 10)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


@cache
def c_library() -> Any:
    """Return the C library of this process, or None if it cannot be loaded."""
    try:
        return ctypes.CDLL(None)
    except (OSError, TypeError):
        return None


def give_back() -> None:
    """Return freed memory to the operating system.

    glibc keeps memory that a thread has freed for the same thread. After a run on many threads this is
    more than a gigabyte, which the next run cannot reuse.
    """
    trim = getattr(c_library(), "malloc_trim", None)  # only in glibc
    if trim is not None:
        trim(0)


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

    def check(self) -> None:
        """Raise the error of the call if it has already failed."""
        if self._failure is not None:
            raise self._failure

    def result(self) -> Result:
        """Wait for the call to end; return its result or raise its error."""
        self._thread.join()
        self.check()
        return self._results[0]


def run_threads(threads: list[threading.Thread]) -> None:
    """Start threads and wait until they end; an interrupt cancels all runs, nested ones too."""
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    except BaseException:
        for cancel in RUNNING:
            cancel[0] = 1
        for thread in threads:
            thread.join()
        raise
