"""Parts of a batch: what is computed at once, and which process computes it.

On a CPU, the parts and their random numbers depend on the batch alone. So any number of processes
learns the same, up to the order in which gradients are added. A part needs less memory than a batch.
On GPUs each process computes its share at once, which is faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from treetop.runtime.team import Team

DOCUMENTS_PER_PART = 16


class BatchPart(NamedTuple):
    """Documents of a batch that are computed at once.

    A process that has none of a batch's parts computes a stand-in, whose gradients are multiplied by
    0: every process has to take part in adding up.
    """

    rows: np.ndarray
    seed: int  # of dropout
    factor: float = 1.0  # of the gradients


def part_size_of(device: torch.device, batch: int, team: Team, most: int = DOCUMENTS_PER_PART) -> int:
    """Return the number of documents of a part, at most `most` on a CPU."""
    return min(batch, most) if device.type == "cpu" else -(-batch // team.size)


def batch_parts(rows: np.ndarray, size: int, seed: int = 0) -> list[BatchPart]:
    """Divide the documents of a batch into parts; the first one has the seed of the step."""
    starts = range(0, rows.size, size)
    return [BatchPart(rows[start : start + size], seed + n) for n, start in enumerate(starts)]


def parts_of_process(parts: Sequence[BatchPart], team: Team) -> list[BatchPart]:
    """Return the parts that this process computes before gradients are averaged over processes.

    The documents of a batch are ordered by length, so processes take turns, in alternating order.
    """
    turns = turns_of(parts, team)
    order = [team.rank if n % 2 == 0 else team.size - 1 - team.rank for n in range(len(turns))]
    own = [turn[place] for turn, place in zip(turns, order, strict=True)]
    counting = [part for part in own if part.factor] or own[:1]
    return [part._replace(factor=team.size * part.factor) for part in counting]


def turns_of(parts: Sequence[BatchPart], team: Team) -> list[list[BatchPart]]:
    """Divide parts into turns, in which each process computes one; the last is filled up."""
    missing = -len(parts) % team.size
    filled = [*parts, *[BatchPart(parts[0].rows[-1:], parts[0].seed, 0.0)] * missing]
    return [filled[start : start + team.size] for start in range(0, len(filled), team.size)]
