"""The objective of a level, equation 9 divided by N: Σ R̂ L(Y, Wᵀ Φ_dnn) over M, plus λ‖W‖².

With another weighting than the paper's, R̂ and λ are replaced (`Weighting`).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from treetop.features.encoders.randomness import seeded
from treetop.runtime.team import Team
from treetop.training.finetune.batches import DeviceBatch, on_device
from treetop.training.finetune.head import Head
from treetop.training.finetune.loss import level_loss
from treetop.training.finetune.network import LearningEncoder, Scorer
from treetop.training.finetune.sharing import BatchPart
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
    team: Team = field(default_factory=Team)
    network: Any = None  # encoder and head as the processes of the team share them; None: alone
    # Token vectors: a batch has gradients for few of them, so they are averaged by rows.
    vectors: Tensor | None = None

    def shared(self) -> Objective:
        """Return the objective whose gradients the processes of the encoder's team average."""
        team = self.encoder.team
        if team.size == 1:
            return self
        network = Scorer(self.encoder.learner, self.head)
        self.part_gradients(BatchPart(np.zeros(1, np.int64), 0), 1)
        learned = [weight for weight in network.parameters() if weight.requires_grad]
        some_unused = any(weight.grad is None for weight in learned)
        vectors: Tensor = self.encoder.encoder.model.get_input_embeddings().weight
        by_row = [] if vectors.grad is None else [vectors]
        network.zero_grad(set_to_none=True)
        together = team.joined(network, some_unused, by_row)
        return replace(self, team=team, network=together, vectors=by_row[0] if by_row else None)

    def logits(self, batch: DeviceBatch) -> Tensor:
        """Score the nodes of the level for the documents of a batch."""
        if self.network is None:
            return self.head(self.encoder(batch))  # type: ignore[no-any-return]
        return self.network(*self.encoder.padded(batch))  # type: ignore[no-any-return]

    def place(self, rows: np.ndarray) -> DeviceBatch:
        """Move the numbers of the documents `rows` to the device."""
        return on_device(rows, self.lengths, self.encoder.max_length, self.encoder.device)

    def add_penalty_gradients(self) -> None:
        """Accumulate the gradients of λ/N ‖W‖²."""
        if not self.weighting.penalty:
            return
        penalty = self.weighting.penalty / self.lengths.size * self.head.penalty()
        penalty.backward()  # type: ignore[no-untyped-call]

    def add_gradients(self, batch: DeviceBatch, documents: int, factor: float = 1.0) -> Tensor:
        """Accumulate the gradients of the summed loss of a batch, or a part of it, over `documents`.

        `documents` is the number of documents of the whole batch. Returns the loss, which is multiplied
        by `factor` for the gradients.
        """
        logits = self.logits(batch)
        relevance, listed, weights = self.targets(batch.rows)
        losses = level_loss(self.loss, logits, relevance, listed, self.weighting.alpha, weights)
        if self.weighting.mean:
            losses = losses * self.weighting.factor(self.targets.candidates)
        loss = losses.sum() / documents
        (factor * loss).backward()  # type: ignore[no-untyped-call]
        return loss.detach()

    def batch_gradients(self, parts: Sequence[BatchPart], documents: int) -> Tensor:
        """Accumulate the gradients of penalty and mean loss, part by part; returns the mean loss.

        With several processes, `parts` are those of this one, and so is the loss; the gradients are
        averaged in the last part.
        """
        self.add_penalty_gradients()
        total = torch.zeros((), device=self.encoder.device)
        for number, part in enumerate(parts, start=1):
            with nullcontext() if number == len(parts) else self.without_averaging():
                total += self.part_gradients(part, documents)
        if self.vectors is not None and self.vectors.grad is not None:
            self.team.average_rows(self.vectors.grad)
        return total

    def part_gradients(self, part: BatchPart, documents: int) -> Tensor:
        """Accumulate the gradients of a part; returns its share of the mean loss."""
        with seeded(part.seed):  # the dropout of a part does not depend on earlier ones
            loss = self.add_gradients(self.place(part.rows), documents, part.factor)
        return loss if part.factor else torch.zeros_like(loss)

    def without_averaging(self) -> AbstractContextManager[None]:
        """Only accumulate the gradients of this process within the block."""
        context: AbstractContextManager[None]
        context = nullcontext() if self.network is None else self.network.no_sync()
        return context
