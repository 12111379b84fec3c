"""Which documents a step sees: random, but of similar lengths, so that little is padding."""

from __future__ import annotations

import numpy as np

# Batches among which documents are sorted by length.
BATCHES_SORTED = 16


class Batches:
    """The documents of any step, from the seed and the step's number alone.

    Every document comes once an epoch. Nothing has to be remembered to go on from a step.
    """

    def __init__(self, lengths: np.ndarray, batch: int, seed: int) -> None:
        self.lengths, self.seed = lengths, seed
        self.batch = min(batch, lengths.size)
        self._epoch, self._order = -1, np.zeros(0, np.int64)

    def __getitem__(self, step: int) -> np.ndarray:
        """Documents of a step, longest first."""
        a_epoch = self.lengths.size // self.batch
        epoch, number = divmod(step, a_epoch)
        if epoch != self._epoch:
            self._epoch, self._order = epoch, self.order_of(epoch)
        return self._order[number]

    def order_of(self, epoch: int) -> np.ndarray:
        """Batches of an epoch, one a row. Documents that fill no batch wait for another epoch."""
        random = np.random.default_rng([self.seed, epoch])
        batches = self.lengths.size // self.batch
        order = random.permutation(self.lengths.size)[: batches * self.batch]
        groups = np.array_split(np.arange(batches), -(-batches // BATCHES_SORTED))
        parts = []
        for group in groups:
            part = order[group[0] * self.batch : (group[-1] + 1) * self.batch]
            parts.append(part[np.argsort(-self.lengths[part], kind="stable")])
        made = np.concatenate(parts).reshape(batches, self.batch)
        return made[random.permutation(batches)]
