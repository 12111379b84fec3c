"""A training step: on parts of the batch, in several processes, or replayed as a CUDA graph."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch import Tensor

from treetop.features.encoders.devices import is_out_of_memory
from treetop.features.encoders.randomness import seeded
from treetop.training.finetune.batches import DeviceBatch
from treetop.training.finetune.graphs import Recorder
from treetop.training.finetune.objective import Objective
from treetop.training.finetune.optimizer import LevelOptimizer
from treetop.training.finetune.sharing import (
    BatchPart,
    batch_parts,
    part_size_of,
    parts_of_process,
    turns_of,
)


class TrainingStep:
    """A step computes the gradients of a batch and updates the weights by Adam.

    The gradients of a batch are those of its parts, added up over all processes of the team. If a part
    does not fit into the memory of the device, it and all later ones are made smaller.
    """

    def __init__(
        self,
        objective: Objective,
        optimizer: LevelOptimizer,
        batch_size: int,
        note: Callable[[str], None],
    ) -> None:
        """`note` is called with messages for the user."""
        encoder = objective.encoder
        self.objective, self.optimizer, self.note = objective, optimizer, note
        self.team, self.adds_in_order = encoder.team, encoder.adds_in_order
        self.part_size = part_size_of(encoder.device, batch_size, encoder.team, encoder.most_documents)
        self.recorder: Recorder | None = None
        if encoder.records_steps:
            self.recorder = Recorder(partial(step_without_waiting, objective, optimizer))
        elif not self.adds_in_order:
            self.objective = objective.shared()

    def __call__(self, rows: np.ndarray, seed: int) -> Tensor:
        """Take a step on the documents `rows`; returns this process's share of their mean loss before.

        The next call may overwrite the returned tensor.
        """
        while True:
            try:
                if self.recorder is not None:
                    with seeded(seed):  # the dropout of a step does not depend on earlier steps
                        return self.recorder(*self.objective.place(rows))
                loss = self.gradients(rows, seed)
                break
            except RuntimeError as error:
                # Other processes would not notice that this one repeats its part.
                if not is_out_of_memory(error) or self.part_size == 1 or self.team.size > 1:
                    raise
                self.halve(rows.size)
        self.optimizer.step()
        return loss

    def gradients(self, rows: np.ndarray, seed: int) -> Tensor:
        """Accumulate the gradients of the documents `rows`; returns the loss of this process's part."""
        parts = batch_parts(rows, self.part_size, seed)
        if self.team.size > 1 and self.adds_in_order:
            return self.gradients_in_order(parts, rows.size)
        return self.objective.batch_gradients(parts_of_process(parts, self.team), rows.size)

    def gradients_in_order(self, parts: list[BatchPart], documents: int) -> Tensor:
        """Accumulate gradients in the order of the parts, as a single process does."""
        self.objective.add_penalty_gradients()
        weights = self.optimizer.learned
        sums = [weight.grad for weight in weights]
        self.optimizer.forget_gradients()
        loss = torch.zeros((), device=self.objective.encoder.device)
        for turn in turns_of(parts, self.team):
            loss += self.objective.part_gradients(turn[self.team.rank], documents)
            own = {n: weight.grad for n, weight in enumerate(weights) if weight.grad is not None}
            self.optimizer.forget_gradients()
            for share in self.team.everyone(torch.cat([part.float().ravel() for part in own.values()])):
                pieces = share.split([part.numel() for part in own.values()])
                for (n, part), piece in zip(own.items(), pieces, strict=True):
                    added, earlier = piece.view_as(part).to(part.dtype), sums[n]
                    sums[n] = added.clone() if earlier is None else earlier + added
        for weight, total in zip(weights, sums, strict=True):
            weight.grad = total
        return loss

    def halve(self, batch_size: int) -> None:
        """Split batches into smaller parts, and stop recording, which works with whole batches only."""
        self.optimizer.forget_gradients()
        self.recorder = None
        self.part_size = -(-self.part_size // 2)
        torch.cuda.empty_cache()
        self.note(
            f"out of memory: splitting batches of {batch_size} into parts of {self.part_size} "
            "from now on"
        )


def step_without_waiting(
    objective: Objective, optimizer: LevelOptimizer, rows: Tensor, width: int, full: bool
) -> Tensor:
    """Take a step on a whole batch without waiting for the device, so that it can be recorded."""
    objective.add_penalty_gradients()
    loss = objective.add_gradients(DeviceBatch(rows, width, full), len(rows))
    optimizer.step()
    return loss
