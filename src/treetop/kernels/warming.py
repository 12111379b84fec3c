"""Compiling many kernels at once, in several processes: the compiler itself uses one core only.

A worker process reads names of kernels, one per line, and answers with each name once that kernel
is in the cache on disk, from where this process loads it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from treetop.runtime.parallel import thread_count
from treetop.runtime.progress import Reporter

MOST_PROCESSES = 4  # the kernel that takes longest takes a third of the time of all
WORKER = "from treetop.kernels import compile_by_name; compile_by_name()"


class Compilable(Protocol):
    """A kernel, as far as compiling it is concerned."""

    name: str

    @property
    def ready(self) -> bool: ...  # noqa: D102
    @property
    def on_disk(self) -> bool: ...  # noqa: D102
    @property
    def is_kept(self) -> bool: ...  # noqa: D102
    @property
    def size(self) -> int: ...  # noqa: D102
    def compile(self) -> None: ...  # noqa: D102


def warm_up(
    kernels: Sequence[Compilable],
    processes: int | None = None,
    report: Reporter | None = None,
) -> int:
    """Compile the kernels that are not on disk yet; return how many there were.

    There is one of the `processes` per core by default, this one included. `report` shows a step if
    there is anything to do.
    """
    missing = [kernel for kernel in kernels if not kernel.ready and not kernel.on_disk]
    if missing:
        advance = (report or Reporter()).step("compiling (first run only)", len(missing))
        compile_missing(missing, thread_count(processes), advance)
    for kernel in missing:
        kernel.compile()
    return len(missing)


def compile_missing(kernels: list[Compilable], processes: int, advance: Callable[[], Any]) -> None:
    """Compile in this process and in workers, those that take longest first."""
    if not all(kernel.is_kept for kernel in kernels):
        processes = 1  # what a worker compiles could not be handed over
    queue = deque(sorted(kernels, key=lambda kernel: -kernel.size))
    crew = [
        CompilerProcess(queue, advance) for _ in range(min(processes, len(kernels), MOST_PROCESSES) - 1)
    ]
    try:
        while queue:
            queue.popleft().compile()
            advance()
        for worker in crew:
            worker.thread.join()
    finally:
        for worker in crew:
            worker.process.kill()
            worker.process.wait()


class CompilerProcess:
    """A process that compiles kernels, and the thread that hands them over one at a time."""

    def __init__(self, queue: deque[Compilable], advance: Callable[[], Any]) -> None:
        self.queue, self.advance = queue, advance
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        self.thread = threading.Thread(target=self.hand_over, daemon=True)
        self.thread.start()

    def hand_over(self) -> None:
        """Give the process kernel after kernel, until none is left or the process has failed.

        A kernel whose worker has failed is compiled by `warm_up` in this process.
        """
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        while self.queue:
            try:
                kernel = self.queue.popleft()
                self.process.stdin.write(f"{kernel.name}\n")
                self.process.stdin.flush()
                if not self.process.stdout.readline():
                    return
            except (IndexError, OSError, ValueError):
                return
            self.advance()
