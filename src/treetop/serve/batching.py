"""Micro-batching: requests that arrive together are computed together.

One thread computes, the event loop collects. While a batch is computed the next one fills up, so
batches grow by themselves under load and a lone request does not wait.
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

from treetop.serve.limits import Refused, busy, stopping
from treetop.serve.options import ServiceOptions

# Texts of one request that are computed before another request has its turn.
SHARE = 16
# How far the engine stands back behind the event loop (as the command nice counts).
NICE = 10
# How much of the estimate of seconds a text the latest batch makes up.
LATEST = 0.2


@dataclass
class QueuedJob:
    """Texts of one request, and what has been answered so far."""

    texts: Sequence[str]
    options: Any
    until: float
    answer: asyncio.Future[list[Any]]
    taken: int = 0
    made: list[Any] = field(default_factory=list)


@dataclass(frozen=True)
class Piece:
    """Some texts of a job, as the engine gets them."""

    texts: Sequence[str]
    options: Any


class Batcher:
    """A queue of jobs before an engine that answers pieces of them, a batch at a time."""

    def __init__(
        self,
        engine: Callable[[list[Piece]], list[list[Any]]],
        options: ServiceOptions,
        most: int,
        watch: Callable[[int, float], None] = lambda texts, seconds: None,
    ) -> None:
        self.engine, self.options, self.most, self.watch = engine, options, most, watch
        self.jobs: deque[QueuedJob] = deque()
        self.waiting = 0  # texts in `jobs` that are not taken yet
        self.computing = 0  # texts of the batch that is being computed
        self.seconds_a_text = 0.0
        self.filled = asyncio.Event()
        self.thread = ThreadPoolExecutor(1, "engine", initializer=step_back)
        self.closed = False

    def expected_wait(self) -> float:
        """Seconds until a job that comes now would have its turn."""
        return (self.waiting + self.computing) * self.seconds_a_text

    async def submit(self, texts: Sequence[str], options: Any, until: float | None = None) -> list[Any]:
        """Answers for `texts`, in order; `Refused` if too many are waiting or it takes too long.

        `until`: the moment (of `time.monotonic`) at which the request's time is over.
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
        if until is None:
            until = time.monotonic() + self.options.timeout
        answer: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
        self.jobs.append(QueuedJob(texts, options, until, answer))
        self.waiting += len(texts)
        self.filled.set()
        try:
            async with asyncio.timeout(max(0.0, until - time.monotonic())):
                return await answer
        except TimeoutError:
            raise too_slow(self.options.timeout) from None

    async def run(self) -> None:
        """Compute batches until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await self.filled.wait()
            if self.options.batch_wait and self.waiting < self.most:
                await asyncio.sleep(self.options.batch_wait / 1e3)
            batch = self.take()
            if not batch:
                continue
            pieces = [piece for _, piece in batch]
            self.computing = sum(len(piece.texts) for piece in pieces)
            started = time.monotonic()
            answers = await loop.run_in_executor(self.thread, self.compute, pieces)
            seconds = time.monotonic() - started
            self.watch(self.computing, seconds)
            latest = seconds / self.computing
            self.seconds_a_text += LATEST * (latest - self.seconds_a_text)
            self.computing = 0
            for (job, _), made in zip(batch, answers, strict=True):
                give(job, made)

    def compute(self, pieces: list[Piece]) -> list[Any]:
        """Answers to pieces; if something fails, each for itself: one bad text fails alone."""
        try:
            return self.engine(pieces)
        except Exception as error:
            if len(pieces) == 1:
                return [error]
        return [answer for piece in pieces for answer in self.compute([piece])]

    def take(self) -> list[tuple[QueuedJob, Piece]]:
        """The next batch: jobs in turn, some texts of each, those that came too late left out."""
        batch: list[tuple[QueuedJob, Piece]] = []
        room, now = self.most, time.monotonic()
        for _ in range(len(self.jobs)):
            job = self.jobs.popleft()
            left = len(job.texts) - job.taken
            if job.answer.done() or now > job.until:
                self.waiting -= left
                continue
            count = min(left, SHARE, room)
            texts = job.texts[job.taken : job.taken + count]
            batch.append((job, Piece(texts, job.options)))
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

    async def finish(self, seconds: float) -> None:
        """Take no more jobs, and wait until those accepted are answered."""
        self.closed = True
        until = time.monotonic() + seconds
        while (self.jobs or self.computing) and time.monotonic() < until:
            await asyncio.sleep(0.02)
        self.thread.shutdown(wait=False)


def step_back() -> None:
    """Let the event loop go first: what it does takes microseconds, and refusing must be quick."""
    with suppress(OSError, AttributeError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)


def give(job: QueuedJob, made: Any) -> None:
    """Add answers to a job; it is done when all its texts are."""
    if job.answer.done():
        return
    if isinstance(made, Exception):
        job.answer.set_exception(made)
        return
    job.made += made
    if len(job.made) == len(job.texts):
        job.answer.set_result(job.made)


def too_slow(seconds: float) -> Refused:
    """The request's time is over."""
    return Refused(503, "timeout", f"not done within {seconds:g} seconds", retry_after="5")
