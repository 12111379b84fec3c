"""Records of fine-tuning: finished levels, checkpoints within a level, a history, TensorBoard."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any, Protocol

from treetop.runtime import Runtime
from treetop.runtime.arrays import Arrays
from treetop.runtime.extras import require
from treetop.runtime.files import json_lines, replacing_file
from treetop.settings.schema import TransformerSettings
from treetop.training.finetune.state import State, from_arrays, to_arrays
from treetop.training.marked import read_marked, write_marked
from treetop.training.run import CHECKPOINT, HISTORY, Run, Stage

# An entry of the history: level, step, steps, loss, learning_rate, seconds and possibly VALIDATION.
Figures = dict[str, float]
VALIDATION = "validation P@1"


class LevelLog(Protocol):
    """What the training loop of a level reports."""

    def record(self, figures: Figures) -> None:
        """Record the metrics of the steps since the last call."""

    def save_checkpoint(self, t: int, state: State) -> None:
        """Keep a state from which level `t` can be resumed, if it is time for one."""


class NoLog:
    """The log of processes that follow a leader, who records for all."""

    def record(self, figures: Figures) -> None:
        """Do nothing."""

    def save_checkpoint(self, t: int, state: State) -> None:
        """Do nothing."""


class RunLog:
    """Writes the files of fine-tuning to the run's folder, if there is one, and reports progress.

    Nothing else in this room writes files; of several processes, only the leader has a `RunLog`.
    """

    def __init__(
        self,
        run: Run,
        stage: Stage,
        settings: TransformerSettings,
        facts: dict[str, Any],
        runtime: Runtime,
    ) -> None:
        """`stage` is that of the first level; `facts` are further inputs of all levels."""
        self.run, self.stage, self.settings, self.facts = run, stage, settings, facts
        self.reporter, self.seconds = runtime.reporter, 60 * runtime.checkpoint_minutes
        self.history = self._earlier_history()
        self._saved_at = time.monotonic()
        self._advance: Callable[[], object] = lambda: None
        self._shown = 0
        self._board = tensorboard_writer(runtime.tensorboard)

    def finished_level(self, t: int, learn: Callable[[], Arrays]) -> Arrays:
        """Return the results of level `t`, from the run's folder or else from `learn`."""
        after = self.stage.after if t == 1 else (f"level-{t - 1}",)
        level = Stage(f"level-{t}", self.stage.reads, after)
        return self.run.stage(level, self.settings, lambda _: learn(), level=t, **self.facts)

    def load_checkpoint(self, t: int) -> State | None:
        """Return the last checkpoint within level `t`, if there is one."""
        if self.run.folder is None:
            return None
        arrays = read_marked(self.run.folder / CHECKPOINT, self.run.prints[f"level-{t}"])
        return None if arrays is None else from_arrays(arrays)

    def begin_level(self, t: int, name: str, step: int, steps: int) -> None:
        """Report level `t` from `step` on, and drop the history of steps that are repeated."""
        self.history = [
            figures for figures in self.history if (figures["level"], figures["step"]) <= (t, step)
        ]
        self._advance, self._shown = self.reporter.step(name, steps), 0

    def record(self, figures: Figures) -> None:
        """Record and report the metrics of the steps since the last call."""
        step = int(figures["step"])
        for _ in range(step - self._shown):
            self._advance()
        self._shown = step
        self.history.append(figures)
        score = figures.get(VALIDATION)
        self.reporter.figures(
            f"loss {figures['loss']:.3f}" + ("" if score is None else f", P@1 {100 * score:.1f}")
        )
        if self._board is not None:
            for name in ("loss", "learning_rate", VALIDATION):
                if name in figures:
                    self._board.add_scalar(f"level {figures['level']}/{name}", figures[name], step)

    def save_checkpoint(self, t: int, state: State) -> None:
        """Write a checkpoint within level `t` if enough time has passed since the last one."""
        if self.run.folder is None or time.monotonic() - self._saved_at < self.seconds:
            return
        # The history comes first: when resuming, later entries are dropped, but missing ones are lost.
        self.write_history()
        write_marked(self.run.folder / CHECKPOINT, self.run.prints[f"level-{t}"], to_arrays(state))
        self._saved_at = time.monotonic()

    def write_history(self) -> None:
        """Write the history to the run's folder."""
        if self.run.folder is not None:
            with replacing_file(self.run.folder / HISTORY) as file:
                file.write(json_lines(self.history))

    def close(self) -> None:
        """Write the history and close the TensorBoard log."""
        self.write_history()
        if self._board is not None:
            self._board.close()

    def _earlier_history(self) -> list[Figures]:
        """Return the history of the run so far; without its lines after one that is damaged."""
        path = None if self.run.folder is None else self.run.folder / HISTORY
        history: list[Figures] = []
        if path is not None and path.is_file():
            for line in path.read_bytes().splitlines():
                try:
                    entry = dict(json.loads(line))
                    history.append({**entry, "level": int(entry["level"]), "step": int(entry["step"])})
                except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError):
                    break
        return history


def tensorboard_writer(folder: str | None) -> Any:
    """Return a writer for TensorBoard logs; None without a folder."""
    if folder is None:
        return None
    return require("TensorBoard logs", "tensorboard", "torch.utils.tensorboard").SummaryWriter(folder)
