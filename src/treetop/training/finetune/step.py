"""One step on one batch, however the device likes it: in parts where memory is short, or recorded."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch import Tensor

from treetop.features.encoders.devices import is_out_of_memory
from treetop.training.finetune.batches import DeviceBatch
from treetop.training.finetune.graphs import Recorder
from treetop.training.finetune.objective import Objective
from treetop.training.finetune.optimizer import LevelOptimizer


class TrainingStep:
    """Gradients of a batch, then Adam.

    A batch that does not fit the device's memory is cut in parts, and stays cut from then on. Their
    gradients add up to those of the batch.
    """

    def __init__(
        self,
        objective: Objective,
        optimizer: LevelOptimizer,
        batch_size: int,
        note: Callable[[str], None],
    ) -> None:
        """`note` gets what a user should know."""
        self.objective, self.optimizer, self.note = objective, optimizer, note
        self.part_size = batch_size
        self.recorder: Recorder | None = None
        if objective.encoder.records_steps:
            self.recorder = Recorder(partial(step_without_waiting, objective, optimizer))

    def __call__(self, rows: np.ndarray, seed: int) -> Tensor:
        """The mean loss of the documents `rows`, after which the weights have moved.

        The next call may overwrite it.
        """
        while True:
            # Seeded anew: a step's dropout does not depend on what was before it.
            torch.manual_seed(seed)
            try:
                if self.recorder is not None:
                    return self.recorder(*self.objective.place(rows))
                loss = self.gradients(rows)
                break
            except RuntimeError as error:
                if not is_out_of_memory(error) or self.part_size == 1:
                    raise
                self.halve(rows.size)
        self.optimizer.step()
        return loss

    def gradients(self, rows: np.ndarray) -> Tensor:
        """Gradients of a batch, in parts that fit; its mean loss."""
        return self.objective.batch_gradients(rows, self.part_size)

    def halve(self, batch_size: int) -> None:
        """After running out of memory: smaller parts, and no recording, which is of whole batches."""
        self.optimizer.forget_gradients()
        self.recorder = None
        self.part_size = -(-self.part_size // 2)
        torch.cuda.empty_cache()
        self.note(
            f"out of memory: batches of {batch_size} go in parts of {self.part_size} from here on"
        )


def step_without_waiting(
    objective: Objective, optimizer: LevelOptimizer, rows: Tensor, width: int, full: bool
) -> Tensor:
    """A step on a whole batch: nothing in it waits for the device, so it can be recorded."""
    objective.add_penalty_gradients()
    loss = objective.add_gradients(DeviceBatch(rows, width, full), len(rows))
    optimizer.step()
    return loss
