"""Batches: random documents of similar lengths, to keep padding small."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

# Number of batches within which documents are sorted by length.
BATCHES_SORTED = 16
# Widths of batches are multiples of this, unless all documents have the same length.
WIDTH_STEP = 16


class Batches:
    """The documents of each step, determined by the seed and the number of the step alone.

    A document occurs at most once per epoch. No state is necessary to resume at a step, and
    each of several processes computes the batches of all.
    """

    def __init__(self, lengths: np.ndarray, batch: int, seed: int) -> None:
        self.lengths, self.seed = lengths, seed
        self.batch = min(batch, lengths.size)
        self._epoch, self._order = -1, np.zeros((0, self.batch), np.int64)

    def __getitem__(self, step: int) -> np.ndarray:
        """Return the documents of a step, longest first."""
        epoch, number = divmod(step, self.per_epoch)
        if epoch != self._epoch:
            self._epoch, self._order = epoch, self.order_of(epoch)
        return np.asarray(self._order[number])

    @property
    def per_epoch(self) -> int:
        """Number of batches in an epoch."""
        return int(self.lengths.size // self.batch)

    def order_of(self, epoch: int) -> np.ndarray:
        """Return the documents of an epoch, shape (batches, batch size); the remainder is left out."""
        random = np.random.default_rng([self.seed, epoch])
        count = self.per_epoch
        order = random.permutation(self.lengths.size)[: count * self.batch]
        groups = np.array_split(np.arange(count), -(-count // BATCHES_SORTED))
        parts = []
        for group in groups:
            part = order[group[0] * self.batch : (group[-1] + 1) * self.batch]
            parts.append(part[np.argsort(-self.lengths[part], kind="stable")])
        batches = np.concatenate(parts).reshape(count, self.batch)
        return np.asarray(batches[random.permutation(count)])


class DeviceBatch(NamedTuple):
    """The documents of a batch on the device, and the width of their padded tokens."""

    rows: Tensor  # int64
    width: int  # tokens per row
    full: bool  # whether all documents have this width, so that no mask is needed


def on_device(rows: np.ndarray, lengths: np.ndarray, longest: int, device: torch.device) -> DeviceBatch:
    """Move a batch to the device; `longest` is the maximum number of tokens of the encoder."""
    tokens = lengths[rows]
    most, full = int(tokens.max()), bool(tokens.max() == tokens.min())
    width = most if full else -(-most // WIDTH_STEP) * WIDTH_STEP
    placed = torch.from_numpy(rows).to(device, non_blocking=True)
    return DeviceBatch(placed, min(width, longest), full)
