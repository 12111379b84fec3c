"""The objective of a level, equation 9 divided by N: Σ R̂ L(Y, Wᵀ Φ_dnn) over M, plus λ‖W‖².

With another weighting than the paper's, R̂ and λ are replaced (`Weighting`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from treetop.training.finetune.batches import DeviceBatch, on_device
from treetop.training.finetune.head import Head
from treetop.training.finetune.loss import level_loss
from treetop.training.finetune.network import LearningEncoder
from treetop.training.finetune.targets import Targets
from treetop.training.finetune.weighting import Weighting


@dataclass(frozen=True)
class Objective:
    """The objective as a function of encoder and head, and its gradients."""

    encoder: LearningEncoder
    head: Head
    targets: Targets
    lengths: np.ndarray  # number of tokens of each document
    loss: str
    weighting: Weighting

    def place(self, rows: np.ndarray) -> DeviceBatch:
        """Move the numbers of the documents `rows` to the device."""
        return on_device(rows, self.lengths, self.encoder.max_length, self.encoder.device)

    def add_penalty_gradients(self) -> None:
        """Accumulate the gradients of λ/N ‖W‖²."""
        if not self.weighting.penalty:
            return
        penalty = self.weighting.penalty / self.lengths.size * self.head.penalty()
        penalty.backward()  # type: ignore[no-untyped-call]

    def add_gradients(self, batch: DeviceBatch, documents: int) -> Tensor:
        """Accumulate the gradients of the summed loss of a batch, or a part of it, over `documents`.

        `documents` is the number of documents of the whole batch. Returns the loss.
        """
        logits = self.head(self.encoder(batch))
        relevance, listed, weights = self.targets(batch.rows)
        losses = level_loss(self.loss, logits, relevance, listed, self.weighting.alpha, weights)
        if self.weighting.mean:
            losses = losses * self.weighting.factor(self.targets.candidates)
        loss = losses.sum() / documents
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach()

    def batch_gradients(self, rows: np.ndarray, part_size: int) -> Tensor:
        """Accumulate the gradients of penalty and mean loss, part by part; returns the mean loss."""
        self.add_penalty_gradients()
        total = torch.zeros((), device=self.encoder.device)
        for start in range(0, rows.size, part_size):
            part = self.place(rows[start : start + part_size])
            total += self.add_gradients(part, rows.size)
        return total
