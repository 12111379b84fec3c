"""What fine-tuning leaves behind: checkpoints within a level, finished levels, a history."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from treetop.runtime.arrays import part, prefixed
from treetop.runtime.extras import require
from treetop.runtime.files import replacing_file
from treetop.runtime.progress import Reporter
from treetop.training.finetune.level import Level
from treetop.training.run import (
    CHECKPOINT,
    HISTORY,
    Arrays,
    Run,
    history_text,
    read_marked,
    write_marked,
)


class Keeper:
    """Remembers a fine-tuning in its run's folder, if it has one."""

    def __init__(
        self,
        run: Run,
        settings: dict[str, Any],
        after: tuple[str, ...],
        minutes: float,
        tensorboard: str | None = None,
    ) -> None:
        self.run, self.settings, self.after, self.seconds = run, settings, after, 60 * minutes
        self.saved = time.monotonic()
        self.history: list[dict[str, Any]] = self._past()
        self._board = board(tensorboard)

    def stage(self, t: int, learn: Callable[[], Arrays]) -> Arrays:
        """The weights and vectors after level `t`, learned unless they are there."""
        after = self.after if t == 1 else (f"level-{t - 1}",)
        return self.run.stage(f"level-{t}", {**self.settings, "level": t}, after, learn)

    def checkpoint(self, t: int) -> Arrays | None:
        """The checkpoint within level `t`, if there is one."""
        if self.run.folder is None:
            return None
        return read_marked(self.run.folder / CHECKPOINT, self.run.prints[f"level-{t}"])

    def place(self, t: int) -> int:
        """Step of the checkpoint within level `t`, 0 without one."""
        found = self.checkpoint(t)
        return 0 if found is None else int(found["step"][0])

    def restore(self, level: Level) -> None:
        """Put a level where its checkpoint left it."""
        found = self.checkpoint(level.number)
        step = 0
        if found is not None:
            parts = {name: part(found, name) for name in ("encoder", "head", "adam", "best")}
            level.masters.restore(parts["encoder"])
            level.head.restore(parts["head"])
            level.adam.restore(parts["adam"])
            progress = level.progress
            step = progress.step = level.looked = int(found["step"][0])
            progress.best, progress.since_best = float(found["score"][0]), int(found["since_best"][0])
            progress.best_weights = {name: np.array(values) for name, values in parts["best"].items()}
        here = (level.number, step)
        self.history = [one for one in self.history if (one["level"], one["step"]) <= here]

    def save(self, level: Level) -> None:
        """Write a checkpoint if the last one is old enough."""
        if self.run.folder is None or time.monotonic() - self.saved < self.seconds:
            return
        progress = level.progress
        arrays = {
            **level.weights(),
            **prefixed("adam", level.adam.arrays()),
            **prefixed("best", progress.best_weights),
            "step": np.array([progress.step]),
            "score": np.array([progress.best]),
            "since_best": np.array([progress.since_best]),
        }
        write_marked(self.run.folder / CHECKPOINT, self.run.prints[f"level-{level.number}"], arrays)
        self.write_history()
        self.saved = time.monotonic()

    def looker(self, advance: Callable[..., Any], report: Reporter) -> Callable[[dict[str, Any]], None]:
        """What to do with a level's figures: note them, and show them."""
        shown = 0

        def look(facts: dict[str, Any]) -> None:
            nonlocal shown
            for _ in range(facts["step"] - shown):
                advance()
            shown = facts["step"]
            self.history.append(facts)
            score = facts.get("validation P@1")
            report.figures(
                f"loss {facts['loss']:.3f}" + ("" if score is None else f", P@1 {100 * score:.1f}")
            )
            if self._board is not None:
                for name in ("loss", "learning_rate", "validation P@1"):
                    if facts.get(name) is not None:
                        self._board.add_scalar(f"level {facts['level']}/{name}", facts[name], shown)

        return look

    def finish(self) -> None:
        """Write the history as it stands at the end."""
        self.write_history()
        if self._board is not None:
            self._board.close()

    def _past(self) -> list[dict[str, Any]]:
        if self.run.folder is None or not (self.run.folder / HISTORY).is_file():
            return []
        lines = (self.run.folder / HISTORY).read_text("utf-8").splitlines()
        return [json.loads(line) for line in lines]

    def write_history(self) -> None:
        """Write the history as it stands."""
        if self.run.folder is not None:
            with replacing_file(self.run.folder / HISTORY) as file:
                file.write(history_text(self.history))


def board(folder: str | None) -> Any:
    """A writer for TensorBoard, if one is wanted."""
    if folder is None:
        return None
    return require("TensorBoard logs", "tensorboard", "torch.utils.tensorboard").SummaryWriter(folder)
