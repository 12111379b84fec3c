"""One text at a time on a GPU: the encoder's kernels are recorded once a width and replayed.

A text's kernels take a fraction of a millisecond; to start them one by one takes the host ten times as
long.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any

import numpy as np
import torch
from torch import Tensor

# Texts are padded to multiples of this, so that few recordings serve all.
WIDTH_STEP = 32


class Replay:
    """Calls `encode(ids, mask)` of one row, or replays what it did with another row."""

    def __init__(
        self,
        encode: Callable[[Tensor, Tensor], Tensor],
        longest: int,
        padding: int,
        device: torch.device,
    ) -> None:
        self.encode, self.longest, self.padding, self.device = encode, longest, padding, device
        self.recorded: dict[int, tuple[Any, Tensor, Tensor, Tensor]] = {}
        self.lock = Lock()

    def __call__(self, row: np.ndarray) -> np.ndarray:
        """Φ_dnn of one row of ids."""
        width = min(self.longest, -(-row.size // WIDTH_STEP) * WIDTH_STEP)
        ids = np.full((1, width), self.padding, np.int64)
        ids[0, : row.size] = row
        mask = (np.arange(width) < row.size).astype(np.int64)[None]
        with self.lock:  # a recording has one place for its input and one for its output
            if width not in self.recorded:
                self.recorded[width] = self.record(width)
            graph, own_ids, own_mask, vector = self.recorded[width]
            own_ids.copy_(torch.from_numpy(ids))
            own_mask.copy_(torch.from_numpy(mask))
            graph.replay()
            return vector.cpu().numpy()

    def record(self, width: int) -> tuple[Any, Tensor, Tensor, Tensor]:
        """The kernels of one width, the ids and mask they read and the vector they write."""
        ids, mask = (torch.ones(1, width, dtype=torch.long, device=self.device) for _ in range(2))
        here, stream = torch.cuda.current_stream(), torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(here)
        with torch.cuda.stream(stream):
            for _ in range(3):  # libraries set themselves up
                self.encode(ids, mask)
        here.wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
            vector = self.encode(ids, mask)
        return graph, ids, mask, vector
