"""Micro-batching: texts of requests that arrive at about the same time are computed together.

One thread computes while the event loop collects. During a batch the next one fills up, so batches
grow under load, and a single request does not wait.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from treetop.serve.errors import busy, stopping, timed_out
from treetop.serve.options import ServiceOptions

# Maximum number of texts of one request per batch, so that large requests do not delay small ones.
TEXTS_PER_TURN = 16
# Niceness of the computing thread relative to the event loop.
NICENESS = 10
# Weight of the latest batch in the moving average of the seconds per text.
LATEST_WEIGHT = 0.2


@dataclass
class QueuedJob:
    """The texts (or rows of features) of a request, and their results so far."""

    texts: Sequence[Any]
    query: Any
    deadline: float
    future: asyncio.Future[list[Any]]
    taken: int = 0  # texts that are in a batch or done
    results: list[Any] = field(default_factory=list)


@dataclass(frozen=True)
class Piece:
    """The texts of a job that are in one batch."""

    texts: Sequence[Any]
    query: Any


class Batcher:
    """A queue of jobs, computed in batches by `compute`: pieces to one list of results per piece."""

    def __init__(
        self,
        compute: Callable[[list[Piece]], list[list[Any]]],
        options: ServiceOptions,
        max_texts: int,
        observe: Callable[[int], None] = lambda texts: None,
    ) -> None:
        self.compute, self.options, self.max_texts, self.observe = compute, options, max_texts, observe
        self.jobs: deque[QueuedJob] = deque()
        self.waiting = 0  # texts of `jobs` that are not in a batch yet
        self.computing = 0  # texts in the current batch
        self.started = 0.0  # when it began
        self.seconds_per_text = 0.0
        self.filled = asyncio.Event()
        self.thread = ThreadPoolExecutor(1, "compute", initializer=lower_priority)
        self.closed = False

    def expected_wait(self) -> float:
        """Estimated seconds until a new job would be computed."""
        return (self.waiting + self.computing) * self.seconds_per_text

    def is_stuck(self) -> bool:
        """Whether the current batch takes longer than any request may wait for it."""
        return bool(self.computing) and time.monotonic() - self.started > self.options.timeout

    async def submit(
        self, texts: Sequence[Any], query: Any, deadline: float | None = None
    ) -> list[Any]:
        """One result per text, in order.

        Answers 503 if the queue is full, or if the results are not there at `deadline`, a value of
        `time.monotonic` (default: `timeout` seconds from now).
        """
        expected = self.expected_wait()
        if self.closed:
            raise stopping()
        if self.waiting and (
            self.waiting + len(texts) > self.options.queue_texts or expected > self.options.max_wait
        ):
            raise busy(expected)
        if not texts:
            return []
        if deadline is None:
            deadline = time.monotonic() + self.options.timeout
        future: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
        self.jobs.append(QueuedJob(texts, query, deadline, future))
        self.waiting += len(texts)
        self.filled.set()
        try:
            async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
                return await future
        except TimeoutError:
            raise timed_out(self.options.timeout) from None

    async def run(self) -> None:
        """Compute batches until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await self.filled.wait()
            if self.options.batch_wait and self.waiting < self.max_texts:
                await asyncio.sleep(self.options.batch_wait / 1e3)
            batch = self.next_batch()
            if not batch:
                continue
            pieces = [piece for _, piece in batch]
            self.computing = sum(len(piece.texts) for piece in pieces)
            self.started = started = time.monotonic()
            results = await loop.run_in_executor(self.thread, self.compute_isolated, pieces)
            seconds_per_text = (time.monotonic() - started) / self.computing
            self.seconds_per_text += LATEST_WEIGHT * (seconds_per_text - self.seconds_per_text)
            self.observe(self.computing)
            self.computing = 0
            for (job, _), result in zip(batch, results, strict=True):
                deliver(job, result)

    def compute_isolated(self, pieces: list[Piece]) -> list[Any]:
        """Results of pieces, or exceptions. If a batch fails, each piece is computed on its own."""
        try:
            return self.compute(pieces)
        except Exception as error:
            if len(pieces) == 1:
                return [error]
        return [result for piece in pieces for result in self.compute_isolated([piece])]

    def next_batch(self) -> list[tuple[QueuedJob, Piece]]:
        """Take some texts of each job in turn; jobs that have timed out are dropped."""
        batch: list[tuple[QueuedJob, Piece]] = []
        room, now = self.max_texts, time.monotonic()
        for _ in range(len(self.jobs)):
            job = self.jobs.popleft()
            left = len(job.texts) - job.taken
            if job.future.done() or now > job.deadline:
                self.waiting -= left
                continue
            count = min(left, TEXTS_PER_TURN, room)
            texts = job.texts[job.taken : job.taken + count]
            batch.append((job, Piece(texts, job.query)))
            job.taken += count
            self.waiting -= count
            room -= count
            if job.taken < len(job.texts):
                self.jobs.append(job)
            if room == 0:
                break
        if not self.jobs:
            self.filled.clear()
        return batch

    async def close(self, seconds: float) -> None:
        """Refuse new jobs, and wait up to `seconds` until the accepted ones are done."""
        self.closed = True
        deadline = time.monotonic() + seconds
        while (self.jobs or self.computing) and time.monotonic() < deadline:
            await asyncio.sleep(0.02)
        self.thread.shutdown(wait=False)


def lower_priority() -> None:
    """Let the event loop run first: its work takes microseconds, and 503 must be sent at once."""
    with suppress(OSError, AttributeError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


def deliver(job: QueuedJob, results: Any) -> None:
    """Add results (or an exception) to a job; it is done when all its texts have one."""
    if job.future.done():
        return
    if isinstance(results, Exception):
        job.future.set_exception(results)
        return
    job.results += results
    if len(job.results) == len(job.texts):
        job.future.set_result(job.results)
