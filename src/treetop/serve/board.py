"""Numbers that the processes of a server share."""

from __future__ import annotations

import mmap
import time

import numpy as np


def shared_numbers(count: int) -> np.ndarray:
    """Zeros (float64) that this process shares with the children it forks."""
    return np.frombuffer(mmap.mmap(-1, 8 * count), np.float64)


class Heartbeats:
    """When each worker of a generation last showed that it works, by `time.monotonic`."""

    def __init__(self, workers: int) -> None:
        self.times = shared_numbers(workers)

    def clear(self, worker: int) -> None:
        """Forget a worker that has exited."""
        self.times[worker] = 0.0

    def beat(self, worker: int) -> None:
        """Note that a worker works."""
        self.times[worker] = time.monotonic()

    def forgive(self, worker: int) -> None:
        """Begin to count the silence of a worker anew, if it has been ready."""
        if self.has_begun(worker):
            self.beat(worker)

    def has_begun(self, worker: int) -> bool:
        """Whether a worker has been ready to answer requests."""
        return bool(self.times[worker] > 0.0)

    def age(self, worker: int) -> float:
        """Seconds since the last sign of a worker."""
        return time.monotonic() - float(self.times[worker])


UNCHANGED, LOADED, FAILED = 0.0, 1.0, 2.0


class ReloadBoard:
    """What became of the reloads that workers asked the supervisor for."""

    def __init__(self) -> None:
        self.numbers = shared_numbers(3)  # reloads finished, outcome of the last one, whether one runs

    @property
    def finished(self) -> int:
        """Number of reloads that have ended."""
        return int(self.numbers[0])

    @property
    def outcome(self) -> float:
        """The outcome of the last reload."""
        return float(self.numbers[1])

    @property
    def running(self) -> bool:
        """Whether a new model is being loaded."""
        return bool(self.numbers[2])

    def begin(self) -> None:
        """Note that a reload has started."""
        self.numbers[2] = 1.0

    def finish(self, outcome: float) -> None:
        """Note that a reload has ended."""
        self.numbers[1], self.numbers[2] = outcome, 0.0
        self.numbers[0] += 1.0
