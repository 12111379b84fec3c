"""Random numbers of torch, whose generator is shared by all threads of a process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

import torch

_generator = RLock()


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Draw the random numbers of a block from a seed, whatever other threads draw meanwhile.

    Two trainings in one process take turns. The caller's own random numbers on the CPU continue
    afterwards as if nothing had been drawn.
    """
    with _generator, torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield
