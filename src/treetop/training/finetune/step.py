"""A training step: split into parts if memory is short, or replayed as a CUDA graph."""

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


class TrainingStep:
    """A step computes the gradients of a batch and updates the weights by Adam.

    If a batch does not fit into the memory of the device, it and all later batches are split into
    parts, whose gradients add up to those of the batch.
    """

    def __init__(
        self,
        objective: Objective,
        optimizer: LevelOptimizer,
        batch_size: int,
        note: Callable[[str], None],
    ) -> None:
        """`note` is called with messages for the user."""
        self.objective, self.optimizer, self.note = objective, optimizer, note
        self.part_size = batch_size
        self.recorder: Recorder | None = None
        if objective.encoder.records_steps:
            self.recorder = Recorder(partial(step_without_waiting, objective, optimizer))

    def __call__(self, rows: np.ndarray, seed: int) -> Tensor:
        """Take a step on the documents `rows`; returns their mean loss before it.

        The next call may overwrite the returned tensor.
        """
        while True:
            try:
                with seeded(seed):  # the dropout of a step does not depend on earlier steps
                    if self.recorder is not None:
                        return self.recorder(*self.objective.place(rows))
                    loss = self.objective.batch_gradients(rows, self.part_size)
                break
            except RuntimeError as error:
                if not is_out_of_memory(error) or self.part_size == 1:
                    raise
                self.halve(rows.size)
        self.optimizer.step()
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
