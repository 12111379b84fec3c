"""One level of the curriculum: encoder and head learn together on the level's targets."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from treetop.errors import TreetopError
from treetop.features.encoders.attention import RECORDABLE
from treetop.features.encoders.devices import DeviceRagged, is_out_of_memory
from treetop.features.encoders.transformer import Encoder
from treetop.runtime.arrays import part, prefixed
from treetop.settings.schema import TransformerSettings
from treetop.training.finetune.batches import Batches
from treetop.training.finetune.head import Head
from treetop.training.finetune.loss import level_loss
from treetop.training.finetune.optimizer import Adam, Masters, rate_at, rates
from treetop.training.finetune.targets import Targets

# Steps between two looks at the losses: a look makes the host wait for the device.
STEPS_BETWEEN_LOOKS = 25
# Widths of batches are multiples of this, unless all documents are as long.
WIDTH_STEP = 16


@dataclass
class Progress:
    """Where a level stands: all that a checkpoint needs beside weights and Adam's memory."""

    step: int = 0
    best: float = -1.0
    since_best: int = 0
    best_weights: dict[str, np.ndarray] = field(default_factory=dict)


@dataclass
class Level:
    """A level's fine-tuning, from any step on."""

    number: int
    encoder: Encoder
    masters: Masters
    head: Head
    targets: Targets
    tokens: DeviceRagged
    batches: Batches
    steps: int
    settings: TransformerSettings
    validate: Callable[[], float] | None = None
    progress: Progress = field(default_factory=Progress)

    def __post_init__(self) -> None:
        chosen = self.settings
        self.rate, head_rate = rates(
            chosen.learning_rate, chosen.head_learning_rate, self.encoder.width
        )
        self.adam = Adam(
            self.masters, self.head, self.rate, head_rate, chosen.weight_decay, chosen.clip
        )
        self.micro = self.batches.batch
        self.recorder: Callable[[Tensor, int, bool], Tensor] | None = None
        if self.head.weight.device.type == "cuda" and chosen.cuda_graphs:
            from treetop.training.finetune.graphs import Recorder

            if self.encoder.model.config.model_type in RECORDABLE:
                self.recorder = Recorder(self.whole_step)
        self.documents = self.batches.lengths.size
        self.losses = torch.zeros(self.steps, device=self.head.weight.device)
        self.looked = self.progress.step
        self.every = max(1, round(chosen.validate_every * self.steps))

    def run(
        self,
        say: Callable[[str], None],
        look: Callable[[dict[str, Any]], None],
        save: Callable[[Level], None],
    ) -> None:
        """Go through the remaining steps.

        `say` gets what a user should know, `look` figures now and then, `save` the level itself when
        it may be written to a checkpoint.
        """
        self.encoder.train()
        self.head.train()
        started = time.perf_counter()
        while self.progress.step < self.steps:
            self.losses[self.progress.step] = self.step(self.progress.step, say)
            self.progress.step += 1
            done = self.progress.step
            due = self.validate is not None and (done % self.every == 0 or done == self.steps)
            if done % STEPS_BETWEEN_LOOKS == 0 or done == self.steps or due:
                facts = self.look(started)
                if due:
                    facts["validation P@1"] = self.keep_best()
                look(facts)
                save(self)
                if self.settings.patience and self.progress.since_best >= self.settings.patience:
                    say(f"level {self.number}: no better P@1 in {self.settings.patience} validations")
                    break
        if self.progress.best_weights:
            self.masters.restore(part(self.progress.best_weights, "encoder"))
            self.head.restore(part(self.progress.best_weights, "head"))

    def step(self, step: int, say: Callable[[str], None]) -> Tensor:
        """One step on its batch; the batch is cut in parts where memory is short."""
        rows = self.batches[step]
        self.adam.set_rate(rate_at(step, self.steps, self.settings.warmup))
        while True:
            # Seeded anew: a step's dropout does not depend on what was before it.
            torch.manual_seed(seed_of(self.settings.seed, self.number, step))
            try:
                if self.recorder is not None and self.micro >= rows.size:
                    return self.recorder(*self.located(rows))
                loss = self.gradients(rows)
                break
            except RuntimeError as error:
                if not is_out_of_memory(error) or self.micro == 1:
                    raise
                self.adam.forget_gradients()
                self.recorder = None
                self.micro = -(-self.micro // 2)
                torch.cuda.empty_cache()
                say(f"out of memory: batches of {rows.size} go in parts of {self.micro} from here on")
        self.adam.step()
        return loss

    def located(self, rows: np.ndarray) -> tuple[Tensor, int, bool]:
        """Documents as the device takes them, tokens of the longest, and whether all are as long."""
        lengths = self.batches.lengths[rows]
        longest, full = int(lengths.max()), bool(lengths.max() == lengths.min())
        width = longest if full else -(-longest // WIDTH_STEP) * WIDTH_STEP
        on_device = torch.from_numpy(rows).to(self.head.weight.device, non_blocking=True)
        return on_device, min(width, self.encoder.max_length), full

    def gradients(self, rows: np.ndarray) -> Tensor:
        """Gradients of the mean loss of `rows` plus λ/N ‖W‖², and the mean loss."""
        self.penalize()
        total = torch.zeros((), device=self.head.weight.device)
        for start in range(0, rows.size, self.micro):
            total += self.part(*self.located(rows[start : start + self.micro]), rows.size)
        return total

    def penalize(self) -> None:
        """Gradients of λ/N ‖W‖²."""
        penalty = self.settings.tune_lambda / self.documents * self.head.penalty()
        penalty.backward()  # type: ignore[no-untyped-call]

    def part(self, rows: Tensor, width: int, full: bool, batch: int) -> Tensor:
        """Gradients of the loss of some rows of a batch, and that loss divided by the batch."""
        logits = self.head(self.encoder(*self.tokens.padded(rows, width, full)))
        relevance, listed, weights = self.targets(rows)
        losses = level_loss(
            self.settings.tune_loss, logits, relevance, listed, self.settings.tune_alpha, weights
        )
        loss = losses.sum() / batch
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach()

    def whole_step(self, rows: Tensor, width: int, full: bool) -> Tensor:
        """A step on a whole batch: nothing in it waits for the device, so it can be recorded."""
        self.penalize()
        loss = self.part(rows, width, full, len(rows))
        self.adam.step()
        return loss

    def look(self, started: float) -> dict[str, Any]:
        """Figures of the steps since the last look; stops the run if a loss is not a number."""
        done, since = self.progress.step, self.looked
        losses = self.losses[since:done].cpu().numpy()
        rate = self.rate * rate_at(done - 1, self.steps, self.settings.warmup)
        wrong = np.flatnonzero(~np.isfinite(losses))
        if wrong.size:
            step = since + int(wrong[0]) + 1
            rate = self.rate * rate_at(step - 1, self.steps, self.settings.warmup)
            raise TreetopError(
                f"the loss is not a number at level {self.number}, step {step} of {self.steps}, "
                f"learning rate {rate:.2g}: the last checkpoint is good; try a smaller learning_rate"
            )
        self.looked = done
        return {
            "level": self.number,
            "step": done,
            "steps": self.steps,
            "loss": float(losses.mean()) if losses.size else None,
            "learning_rate": rate,
            "seconds": round(time.perf_counter() - started, 3),
        }

    def keep_best(self) -> float:
        """P@1 on the documents held back; the best weights so far are remembered."""
        assert self.validate is not None
        score = self.validate()
        progress = self.progress
        progress.since_best += 1
        if score > progress.best:
            progress.best, progress.since_best = score, 0
            progress.best_weights = {name: array.copy() for name, array in self.weights().items()}
        return score

    def weights(self) -> dict[str, np.ndarray]:
        """Those of the encoder and of the head, by name."""
        return {
            **prefixed("encoder", self.masters.arrays()),
            **prefixed("head", self.head.arrays()),
        }


def seed_of(seed: int, level: int, step: int) -> int:
    """A seed of its own for each step."""
    return int(np.random.SeedSequence([abs(seed), level, step]).generate_state(1)[0])
