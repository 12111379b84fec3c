"""The training loop: encoder and head are trained together on one level of the tree."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from treetop.errors import TreetopError
from treetop.runtime.arrays import part, prefixed
from treetop.runtime.failpoints import failpoint
from treetop.runtime.progress import Reporter
from treetop.settings import auto
from treetop.settings.schema import TransformerSettings
from treetop.training.finetune.batches import Batches
from treetop.training.finetune.head import Head
from treetop.training.finetune.network import LearningEncoder
from treetop.training.finetune.objective import Objective
from treetop.training.finetune.optimizer import LevelOptimizer, rate_at
from treetop.training.finetune.runlog import VALIDATION, Figures, LevelLog
from treetop.training.finetune.state import State, copied
from treetop.training.finetune.step import TrainingStep
from treetop.training.finetune.targets import Targets
from treetop.training.finetune.weighting import Weighting

# Steps between two readings of the losses, each of which makes the host wait for the device.
STEPS_BETWEEN_FIGURES = 25


@dataclass(frozen=True)
class LevelTask:
    """Training data and number of steps of a level."""

    level: int
    targets: Targets
    batches: Batches
    steps: int
    warmup: int  # steps in which the learning rate rises
    weighting: Weighting


class LevelTrainer:
    """Fine-tuning of one level, which can be interrupted and resumed at any step.

    `state_dict` contains everything that the remaining steps depend on. After `load_state_dict`, they
    give the same weights, bit for bit, as without the interruption.
    """

    def __init__(
        self,
        encoder: LearningEncoder,
        head: Head,
        task: LevelTask,
        settings: TransformerSettings,
        reporter: Reporter,
    ) -> None:
        self.encoder, self.head, self.task = encoder, head, task
        self.settings, self.reporter = settings, reporter
        self.rate, head_rate = auto.learning_rates(
            settings.learning_rate, settings.head_learning_rate, encoder.width
        )
        self.optimizer = LevelOptimizer(
            encoder.weights, head, settings, rate=self.rate, head_rate=head_rate
        )
        objective = Objective(
            encoder, head, task.targets, task.batches.lengths, settings.tune_loss, task.weighting
        )
        self.take_step = TrainingStep(objective, self.optimizer, task.batches.batch, reporter.note)
        self.losses = torch.zeros(task.steps, device=encoder.device)
        self.steps_between_validations = max(1, round(settings.validate_every * task.steps))
        self.step = 0
        self.losses_read = 0  # number of steps whose losses have been reported
        self.best_score = -1.0
        self.since_best = 0  # number of validations since the best one
        self.best_weights: State = {}

    def run(self, validate: Callable[[], float] | None, log: LevelLog) -> None:
        """Train until the last step, or until `patience` validations in a row give no better score."""
        self.encoder.train()
        self.head.train()
        started = time.perf_counter()
        while self.step < self.task.steps and not self.has_stalled:
            failpoint(f"level-{self.task.level}", self.step)
            rows = self.task.batches[self.step]
            self.train_on(rows)
            validate_now = validate if self.is_due(self.steps_between_validations) else None
            if validate_now is None and not self.is_due(STEPS_BETWEEN_FIGURES):
                continue
            figures = self.read_figures(started)
            if validate_now is not None:
                figures[VALIDATION] = score = validate_now()
                self.keep_if_best(score)
            log.record(figures)
            log.save_checkpoint(self.task.level, self.state_dict())
        if self.has_stalled:
            self.reporter.note(
                f"level {self.task.level}: no better P@1 in {self.settings.patience} validations"
            )
        if self.best_weights:
            self.optimizer.load_weights(self.best_weights)

    def train_on(self, rows: np.ndarray) -> None:
        """Take one step on the documents `rows`."""
        self.optimizer.set_rate(rate_at(self.step, self.task.steps, self.task.warmup))
        seed = step_seed(self.settings.seed, self.task.level, self.step)
        self.losses[self.step] = self.take_step(rows, seed)
        self.step += 1

    @property
    def has_stalled(self) -> bool:
        """Whether the last `patience` validations gave no better score."""
        return 0 < self.settings.patience <= self.since_best

    def is_due(self, interval: int) -> bool:
        """Whether an action that is taken every `interval` steps, and at the end, is due now."""
        return self.step % interval == 0 or self.step == self.task.steps

    def read_figures(self, started: float) -> Figures:
        """Return metrics of the steps since the last call; raise if a loss is not finite."""
        shares = self.losses[self.losses_read : self.step]
        losses = self.encoder.team.add_up(shares).cpu().numpy()
        invalid = np.flatnonzero(~np.isfinite(losses))
        if invalid.size:
            step = self.losses_read + int(invalid[0])
            raise TreetopError(
                f"the loss is not a number at level {self.task.level}, step {step + 1} of "
                f"{self.task.steps}, learning rate {self.rate_of(step):.2g}: try a smaller "
                "learning_rate (the last checkpoint is intact)"
            )
        self.losses_read = self.step
        return {
            "level": self.task.level,
            "step": self.step,
            "steps": self.task.steps,
            "loss": float(losses.mean()),
            "learning_rate": self.rate_of(self.step - 1),
            "seconds": round(time.perf_counter() - started, 3),
        }

    def rate_of(self, step: int) -> float:
        """Return the encoder's learning rate in a step."""
        return self.rate * rate_at(step, self.task.steps, self.task.warmup)

    def keep_if_best(self, score: float) -> None:
        """Keep a copy of the weights if `score` is the best so far."""
        self.since_best += 1
        if score > self.best_score:
            self.best_score, self.since_best = score, 0
            self.best_weights = copied(self.optimizer.weights())

    def weights(self) -> State:
        """Return the weights of encoder and head: ``encoder.*`` and ``head.*``."""
        return self.optimizer.weights()

    def state_dict(self) -> State:
        """Return weights, the state of Adam and the progress of the level; tensors are not copied."""
        return {
            **self.optimizer.state_dict(),
            **prefixed("best", self.best_weights),
            "step": torch.tensor([self.step]),
            "score": torch.tensor([self.best_score], dtype=torch.float64),
            "since_best": torch.tensor([self.since_best]),
        }

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Restore what `state_dict` returned."""
        self.optimizer.load_state_dict(state)
        self.best_weights = copied(part(state, "best"))
        self.step = self.losses_read = int(state["step"][0])
        self.best_score, self.since_best = float(state["score"][0]), int(state["since_best"][0])


def step_seed(seed: int, level: int, step: int) -> int:
    """Derive the seed of a step."""
    return int(np.random.SeedSequence([abs(seed), level, step]).generate_state(1)[0])
