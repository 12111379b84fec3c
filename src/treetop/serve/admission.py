"""Lets requests for labels into the application, some at a time; further ones wait, or are refused.

A request inside the application is many objects, and hundreds of them at once make each of them slower.
Those that wait outside cost nothing but their bytes. A refusal costs a tenth of the fastest answer, so
that too many of them would leave no time to answer: the rest is not read until its turn comes to be
refused, or until there is room.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable
from typing import Protocol

from treetop.serve.batching import Batcher
from treetop.serve.errors import RequestError, busy
from treetop.serve.options import ServiceOptions

# Requests inside the application, in batches: one is computed while the next one is collected.
BATCHES_INSIDE = 2
# Weight of the latest interval in the moving average of the seconds between two admissions.
LATEST_WEIGHT = 0.02
# Requests refused per second and worker, which takes some percent of its time; and how often some are.
REFUSALS_PER_SECOND, TICK_SECONDS, LONGEST_TICK = 2000, 0.02, 0.2
PREDICT = "/v1/predict"
EXPLAIN = "/v1/explain"  # waits in the application: its labels take turns


class Connection(Protocol):
    """A connection whose next request waits."""

    def admit(self) -> None:
        """Hand the request to the application."""

    def refuse_held(self, error: RequestError) -> None:
        """Refuse the request."""


class Admission:
    """Who is inside the application, and who waits outside, in the order of arrival."""

    def __init__(self, options: ServiceOptions, batcher: Batcher) -> None:
        self.options, self.batcher = options, batcher
        self.limit = BATCHES_INSIDE * batcher.max_texts
        self.inside = 0
        self.waiting: deque[Connection] = deque()
        self.surplus: deque[Connection] = deque()  # to be refused, unless there is room before
        self.refusals_left = 0  # in this tick
        self.refused: Counter[str] = Counter()  # by route, since `take_refused`
        self.interval = 0.0  # average seconds between two admissions while others wait
        self.last_admission = 0.0

    @property
    def is_open(self) -> bool:
        """Whether a request that arrives now need not wait outside."""
        return self.inside < self.limit and not self.waiting and not self.surplus

    def expected_wait(self) -> float:
        """Estimated seconds until a request that arrives now would be computed."""
        each = max(self.interval, self.batcher.quick.seconds_per_text)
        return len(self.waiting) * each + self.batcher.expected_wait()

    def refusal(self, route: str) -> RequestError | None:
        """Why a request that arrives now is refused."""
        error = self.batcher.refusal(slow=route == EXPLAIN)
        if error is None and route != EXPLAIN and self.waiting:
            expected, waiting = self.expected_wait(), len(self.waiting) + self.batcher.waiting
            if waiting >= self.options.queue_texts or expected > self.options.max_wait:
                error = busy(expected)
        return error

    def take_refused(self) -> Counter[str]:
        """The requests refused since the last call, by route."""
        refused, self.refused = self.refused, Counter()
        return refused

    def enter(self) -> Callable[[], None]:
        """Note that a request is inside; returns what to call when it has its labels or has ended."""
        self.inside += 1
        inside = True

        def leave() -> None:
            nonlocal inside
            if inside:
                inside = False
                self.inside -= 1
                self.admit_waiting()

        return leave

    def wait(self, connection: Connection) -> None:
        """Let the request of a connection wait for its turn."""
        if not self.waiting:
            self.last_admission = time.monotonic()
        self.waiting.append(connection)

    def may_refuse(self, connection: Connection) -> bool:
        """Whether to refuse a request at once; otherwise it is told later, and not read until then."""
        if self.refusals_left > 0 and not self.surplus:
            self.refusals_left -= 1
            return True
        self.surplus.append(connection)
        return False

    def admit_waiting(self) -> None:
        """Admit requests that wait, as many as may be inside."""
        while self.inside < self.limit and (self.waiting or self.surplus):
            now = time.monotonic()
            self.interval += LATEST_WEIGHT * (now - self.last_admission - self.interval)
            self.last_admission = now
            (self.waiting or self.surplus).popleft().admit()

    def refuse_surplus(self, seconds: float) -> None:
        """Refuse requests for which there is no room, as far as the time since the last call allows."""
        self.refusals_left = round(REFUSALS_PER_SECOND * min(seconds, LONGEST_TICK))
        while self.surplus and self.refusals_left:
            error = self.refusal(PREDICT)
            connection = self.surplus.popleft()
            if error is None:
                self.wait(connection)
            else:
                self.refusals_left -= 1
                connection.refuse_held(error)
        self.admit_waiting()

    async def run(self) -> None:
        """Refuse requests in every tick, until cancelled."""
        last = time.monotonic()
        while True:
            await asyncio.sleep(TICK_SECONDS)
            now = time.monotonic()
            self.refuse_surplus(now - last)
            last = now
