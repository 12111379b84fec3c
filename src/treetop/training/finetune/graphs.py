"""Steps recorded as CUDA graphs: a replay costs the host microseconds instead of milliseconds.

A step of a small encoder is hundreds of short kernels, and the host needs longer to start them than the
GPU to run them. Every shape of a batch has its own recording; all share one pool of memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

Shape = tuple[int, int, bool]
# Steps of a shape that are run without recording first: libraries set themselves up in them.
PLAIN_STEPS = 5


class Recorder:
    """Calls `work(rows, width, full)`, or replays what it did on the GPU with other rows."""

    def __init__(self, work: Callable[[Tensor, int, bool], Tensor]) -> None:
        self.work = work
        self.stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        self.pool = torch.cuda.graph_pool_handle()
        self.seen: Counter[Shape] = Counter()
        self.recorded: dict[Shape, tuple[Any, Tensor, Tensor]] = {}

    def __call__(self, rows: Tensor, width: int, full: bool) -> Tensor:
        """The loss of the step."""
        shape = (len(rows), width, full)
        if shape not in self.recorded:
            self.seen[shape] += 1
            if self.seen[shape] <= PLAIN_STEPS:
                return self.plainly(rows, width, full)
            self.recorded[shape] = self.record(rows, width, full)
        graph, own_rows, loss = self.recorded[shape]
        own_rows.copy_(rows)
        graph.replay()
        return loss

    def plainly(self, rows: Tensor, width: int, full: bool) -> Tensor:
        """Do the work, on the stream that recordings are made on."""
        here = torch.cuda.current_stream()
        self.stream.wait_stream(here)
        with torch.cuda.stream(self.stream):
            loss = self.work(rows, width, full)
        here.wait_stream(self.stream)
        loss.record_stream(here)
        rows.record_stream(self.stream)
        return loss

    def record(self, rows: Tensor, width: int, full: bool) -> tuple[Any, Tensor, Tensor]:
        """The work as a graph, the rows it reads and the loss it writes. Nothing is done yet."""
        graph, own_rows = torch.cuda.CUDAGraph(), rows.clone()
        with torch.cuda.graph(graph, pool=self.pool, stream=self.stream):
            loss = self.work(own_rows, width, full)
        return graph, own_rows, loss
