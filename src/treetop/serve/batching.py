"""Micro-batching: texts of requests that arrive at about the same time are computed together.

One thread computes while the event loop collects. During a batch the next one fills up, so batches
grow under load, and a single request does not wait.

Slow work, an explanation, has turns of its own between two batches, one label each. It delays other
requests by one label, and stops between two labels when its client has gone or its time is over.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from treetop.serve.errors import RequestError, busy, gone, stopping, timed_out
from treetop.serve.options import ServiceOptions

# Maximum number of texts of one request per batch, so that large requests do not delay small ones.
TEXTS_PER_TURN = 16
# A batch with this many characters takes no further text.
CHARACTERS_PER_BATCH = 1_000_000
# Batches whose median is the cost of a text: one that was held up must not make the queue look long.
LATEST_BATCHES = 9


@dataclass(frozen=True)
class Caller:
    """Who waits for results: until when, by `time.monotonic`, and whether the connection is closed.

    `leave` is called when the labels of its texts are there: another request may take its place.
    """

    deadline: float
    has_gone: Callable[[], bool] = lambda: False
    leave: Callable[[], None] = lambda: None


@dataclass
class QueuedJob:
    """The texts (or rows of features) of a request, and their results so far."""

    texts: Sequence[Any]
    query: Any
    caller: Caller
    future: asyncio.Future[list[Any]]
    taken: int = 0  # texts that are in a batch or done
    results: list[Any] = field(default_factory=list)

    def is_over(self) -> bool:
        """Whether nobody waits for the results any more."""
        if self.caller.has_gone() and not self.future.done():
            self.future.set_exception(gone())
        return self.future.done() or time.monotonic() > self.caller.deadline


class Queue:
    """Jobs of one kind, and what they cost."""

    def __init__(self) -> None:
        self.jobs: deque[QueuedJob] = deque()
        self.waiting = 0  # texts of `jobs` that are not in a batch yet
        self.seconds_per_text = 0.0
        self.latest: deque[float] = deque(maxlen=LATEST_BATCHES)

    @property
    def seconds(self) -> float:
        """Estimated time to compute all that is waiting."""
        return self.waiting * self.seconds_per_text

    def add(self, job: QueuedJob) -> None:
        """Append a job."""
        self.jobs.append(job)
        self.waiting += len(job.texts)

    def learn(self, seconds_per_text: float) -> None:
        """Update the cost of a text after a batch."""
        self.latest.append(seconds_per_text)
        self.seconds_per_text = sorted(self.latest)[len(self.latest) // 2]

    def take(self, room: int, per_job: int) -> list[tuple[QueuedJob, Piece]]:
        """Take up to `room` texts, `per_job` of each job in turn; jobs that are over are dropped."""
        batch: list[tuple[QueuedJob, Piece]] = []
        characters = 0
        for _ in range(len(self.jobs)):
            job = self.jobs.popleft()
            left = len(job.texts) - job.taken
            if job.is_over():
                self.waiting -= left
                continue
            count = 0
            while count < min(left, per_job, room) and characters < CHARACTERS_PER_BATCH:
                text = job.texts[job.taken + count]
                characters += len(text) if isinstance(text, str) else 0
                count += 1
            batch.append((job, Piece(job.texts[job.taken : job.taken + count], job.query)))
            job.taken += count
            self.waiting -= count
            room -= count
            if job.taken < len(job.texts):
                self.jobs.append(job)
            if room == 0 or characters >= CHARACTERS_PER_BATCH:
                break
        return batch


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
        self.quick, self.slow = Queue(), Queue()
        self.turn = self.quick  # whose batch is computed
        self.computing = 0  # texts in the current batch
        self.started = 0.0  # when it began
        self.filled = asyncio.Event()
        self.thread = ThreadPoolExecutor(1, "compute")
        self.closed = False

    @property
    def waiting(self) -> int:
        """Texts that are not in a batch yet."""
        return self.quick.waiting + self.slow.waiting

    def expected_wait(self, slow: bool = False) -> float:
        """Estimated seconds until a new job would be computed."""
        queue = self.slow if slow else self.quick
        seconds = queue.seconds + self.computing * self.turn.seconds_per_text
        if not slow:  # one slow text between two batches
            turns = min(self.slow.waiting, 1 + queue.waiting // self.max_texts)
            seconds += turns * self.slow.seconds_per_text
        return seconds

    def refusal(self, texts: int = 1, slow: bool = False) -> RequestError | None:
        """Why a new job would be refused."""
        if self.closed:
            return stopping()
        expected, waiting = self.expected_wait(slow), (self.slow if slow else self.quick).waiting
        full = self.waiting + texts > self.options.queue_texts
        if waiting and (full or expected > self.options.max_wait):
            return busy(expected)
        return None

    def is_stuck(self) -> bool:
        """Whether the current batch takes longer than any request may wait for it."""
        return bool(self.computing) and time.monotonic() - self.started > self.options.timeout

    async def submit(
        self, texts: Sequence[Any], query: object, caller: Caller | None = None, *, slow: bool = False
    ) -> list[Any]:
        """One result per text, in order; `slow`: each text takes a turn of its own.

        Answers 503 if the queue is full, or if the results are not there when the caller's time is over
        (default: `timeout` seconds from now).
        """
        if refusal := self.refusal(len(texts), slow):
            raise refusal
        if not texts:
            return []
        caller = caller or Caller(time.monotonic() + self.options.timeout)
        future: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
        (self.slow if slow else self.quick).add(QueuedJob(texts, query, caller, future))
        self.filled.set()
        try:
            async with asyncio.timeout(max(0.0, caller.deadline - time.monotonic())):
                return await future
        except TimeoutError:
            raise timed_out(self.options.timeout) from None
        finally:
            caller.leave()

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
            self.turn.learn((time.monotonic() - started) / self.computing)
            if self.turn is self.quick:
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
        """The next turn: a batch of texts and one slow text alternate."""
        batch: list[tuple[QueuedJob, Piece]] = []
        for _ in range(2):
            self.turn = self.slow if self.turn is self.quick else self.quick
            room = self.max_texts if self.turn is self.quick else 1
            if batch := self.turn.take(room, TEXTS_PER_TURN):
                break
        if not (self.quick.jobs or self.slow.jobs):
            self.filled.clear()
        return batch

    async def close(self, seconds: float) -> None:
        """Refuse new jobs, and wait up to `seconds` until the accepted ones are done."""
        self.closed = True
        deadline = time.monotonic() + seconds
        while (self.quick.jobs or self.slow.jobs or self.computing) and time.monotonic() < deadline:
            await asyncio.sleep(0.02)
        self.thread.shutdown(wait=False)


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
