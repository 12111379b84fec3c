"""One text at a time on a GPU: CUDA graphs of the encoder, recorded once per padded width.

The kernels of one text take a fraction of a millisecond; launching them one by one takes ten times as
long.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any

import numpy as np
import torch
from torch import Tensor

# Texts are padded to multiples of this many tokens, to limit the number of recordings.
WIDTH_STEP = 32


class Replay:
    """Calls `encode(ids, mask)` on one row, or replays the kernels recorded for its width."""

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
        """Φ_dnn of one row of token ids: float32, 1 x width of the encoder."""
        width = min(self.longest, -(-row.size // WIDTH_STEP) * WIDTH_STEP)
        ids = np.full((1, width), self.padding, np.int64)
        ids[0, : row.size] = row
        mask = (np.arange(width) < row.size).astype(np.int64)[None]
        with self.lock:  # a recording has fixed buffers for its input and output
            if width not in self.recorded:
                self.recorded[width] = self.record(width)
            graph, ids_buffer, mask_buffer, vector = self.recorded[width]
            ids_buffer.copy_(torch.from_numpy(ids))
            mask_buffer.copy_(torch.from_numpy(mask))
            graph.replay()
            return vector.cpu().numpy()

    def record(self, width: int) -> tuple[Any, Tensor, Tensor, Tensor]:
        """The kernels of one width, with the buffers of ids and mask, and the vector they write."""
        ids, mask = (torch.ones(1, width, dtype=torch.long, device=self.device) for _ in range(2))
        current, stream = torch.cuda.current_stream(), torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(current)
        with torch.cuda.stream(stream):
            for _ in range(3):  # warm-up: libraries allocate their workspaces
                self.encode(ids, mask)
        current.wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
            vector = self.encode(ids, mask)
        return graph, ids, mask, vector
