"""What ``treetop train`` says before the work: time, memory and disk of each stage."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import scipy.sparse as sp

from treetop.runtime import Runtime
from treetop.runtime.memory import available_memory, size_text
from treetop.runtime.parallel import thread_count
from treetop.runtime.progress import duration
from treetop.settings.schema import LinearSettings
from treetop.training.advice.problem import Problem, read_problem
from treetop.training.advice.stages import STAGES, StageEstimate

# Settings that save memory, in the order in which they are tried: the least harmful first.
SAVINGS: tuple[dict[str, Any], ...] = (
    {"max_features": 100_000},
    {"max_features": 100_000, "ngrams": "word:1"},
)


class Estimate(NamedTuple):
    """The stages of a training with what each takes."""

    stages: tuple[StageEstimate, ...]
    loaded: int  # bytes of the documents and of the program
    device: str
    threads: int

    @property
    def seconds(self) -> float:
        """Seconds of all stages."""
        return sum(stage.seconds for stage in self.stages)

    @property
    def memory(self) -> int:
        """The most bytes in memory at once."""
        return max(self.memory_by_stage())

    @property
    def disk(self) -> int:
        """Bytes of the model folder."""
        return sum(stage.disk for stage in self.stages)

    def memory_by_stage(self) -> Iterator[int]:
        """The most bytes in memory during each stage."""
        kept = self.loaded
        for stage in self.stages:
            yield kept + stage.memory
            kept += stage.kept

    def as_json(self) -> dict[str, Any]:
        """Everything as values that JSON can represent."""
        stages = {
            stage.name: {"seconds": round(stage.seconds, 2), "memory": memory, "disk": stage.disk}
            for stage, memory in zip(self.stages, self.memory_by_stage(), strict=True)
        }
        totals = {"seconds": round(self.seconds, 2), "memory": self.memory, "disk": self.disk}
        return {**totals, "device": self.device, "threads": self.threads, "stages": stages}

    def line(self) -> str:
        """Everything in one line."""
        parts = [f"{stage.name} {duration(stage.seconds)}" for stage in self.stages]
        threads = f"{self.threads} threads" if self.threads > 1 else "1 thread"
        where = threads if self.device == "cpu" else f"{self.device} and {threads}"
        busy = ", longer while other programs compute" if is_busy() else ""
        return (
            f"estimate on {where}: {duration(self.seconds)}{busy} ({', '.join(parts)}), "
            f"{size_text(self.memory)} of memory, a model of {size_text(self.disk)}"
        )


def is_busy() -> bool:
    """Whether other programs keep the processors busy, as far as the system tells."""
    load = getattr(os, "getloadavg", None)  # not on Windows
    return load is not None and load()[0] > thread_count(None)


def estimate_training(
    texts: Sequence[str], Y: sp.csr_matrix, settings: LinearSettings, runtime: Runtime
) -> tuple[Estimate | None, str | None]:
    """Estimate a training, and advise on its memory.

    Returns None instead of an estimate for so few documents that they are trained on at once, and a
    warning if this machine, or `runtime.memory`, has not enough memory.
    """
    problem = read_problem(texts, Y, settings, runtime)
    if problem is None:
        return None, None
    estimate = estimate_of(problem)
    limits = [size for size in (runtime.memory_bytes, available_memory(problem.loaded)) if size]
    if not limits or estimate.memory <= min(limits):
        return estimate, None
    return estimate, warning(problem, estimate, min(limits))


def estimate_of(problem: Problem) -> Estimate:
    """Sum up what the stages take."""
    stages = tuple(stage for stages_of in STAGES for stage in stages_of(problem))
    device = "cpu" if problem.encoder is None else problem.encoder.device
    return Estimate(stages, problem.loaded, device, problem.threads)


def warning(problem: Problem, estimate: Estimate, limit: int) -> str:
    """Say that memory will not do, and which setting fits."""
    need = f"training needs about {size_text(estimate.memory)} of memory, of {size_text(limit)}"
    for threads in range(problem.threads - 1, 0, -1):
        if estimate_of(problem._replace(threads=threads)).memory <= limit:
            return f"{need}: set threads={threads}"
    for saving in SAVINGS:
        written = ", ".join(f"{name}={value}" for name, value in saving.items())
        if estimate_of(limited(problem, **saving)).memory <= limit:
            return f"{need}: set {written}"
    return f"{need}: train on fewer documents, or on a machine with more memory"


def limited(problem: Problem, max_features: int, ngrams: str | None = None) -> Problem:
    """The problem with one thread and fewer features."""
    texts = problem.texts
    columns = tuple(min(count, max_features) for count in texts.columns)
    if ngrams is not None:
        columns = columns[:1]
    fewer = texts._replace(columns=columns, values=texts.values[: len(columns)])
    return problem._replace(
        texts=fewer, threads=1, settings=replace(problem.settings, max_features=max_features)
    )
