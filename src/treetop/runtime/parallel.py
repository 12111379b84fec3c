"""Tasks that run in parallel, on several threads.

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
from typing import Any, TypeVar

import numpy as np

from treetop.runtime.cancelling import Cancel, current

Item = TypeVar("Item")
Result = TypeVar("Result")


def thread_count(threads: int | None) -> int:
    """Return `threads`, or if it is None the number of cores that this process may use."""
    if threads is not None:
        return max(1, threads)
    affinity = getattr(os, "sched_getaffinity", None)  # not on macOS and Windows
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return min(cores, container_cores() or cores)


@contextmanager
def torch_threads(threads: int | None) -> Iterator[None]:
    """Let torch, if it has been imported, compute on so many threads; None: leave its own choice.

    Torch counts them for each thread that calls it: without this, the same training could give other
    last bits, and so another model, when it is started from another thread.
    """
    torch = sys.modules.get("torch")
    if torch is None or threads is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


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
    cancel = Cancel(current.cancel)
    failures: list[BaseException] = []
    remaining = iter(range(len(tasks)))
    lock = threading.Lock()

    def next_position() -> int | None:
        with lock:
            return None if cancel.flag[0] else next(remaining, None)

    def worker() -> None:
        outer, current.cancel = current.cancel, cancel
        try:
            while (position := next_position()) is not None:
                results[position] = work(tasks[position], cancel.flag)
                if advance is not None:
                    advance()
        except BaseException as failure:
            failures.append(failure)
            cancel.set()
        finally:
            current.cancel = outer

    try:
        if threads == 1 and threading.current_thread() is not threading.main_thread():
            # Only the main thread receives Ctrl-C, and starting a thread takes as long as a small task.
            worker()
        else:
            workers = range(min(threads, len(tasks)))
            run_threads([threading.Thread(target=worker) for _ in workers], cancel)
    finally:
        cancel.end()
    if failures:
        raise failures[0]
    cancel.check()
    return results


def over_ranges(
    work: Callable[[tuple[int, int], np.ndarray], Result], count: int, threads: int
) -> list[Result]:
    """Like `run`, with one range of `count` items per thread as the tasks.

    A single range is done by the calling thread: for few items, starting a thread takes longer.
    """
    if threads > 1:
        return run(work, ranges(count, threads), threads)
    cancel = current.cancel or Cancel(None)
    results = [work((0, count), cancel.flag)]
    cancel.check()
    return results


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


def run_threads(threads: list[threading.Thread], cancel: Cancel) -> None:
    """Start threads and wait until they end; an interrupt cancels their run."""
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    except BaseException:
        cancel.set()
        for thread in threads:
            if thread.ident is not None:
                thread.join()
        raise
