"""Fine-tuning of one level, which all processes of a team do together."""

from __future__ import annotations

from typing import NamedTuple

import scipy.sparse as sp

from treetop.runtime.arrays import Arrays
from treetop.training.finetune.batches import Batches
from treetop.training.finetune.bootstrap import new_head
from treetop.training.finetune.network import LearningEncoder
from treetop.training.finetune.problem import TuningProblem
from treetop.training.finetune.runlog import LevelLog
from treetop.training.finetune.state import State, to_arrays
from treetop.training.finetune.targets import Targets
from treetop.training.finetune.trainer import LevelTask, LevelTrainer
from treetop.training.finetune.validation import Validator


class LevelStart(NamedTuple):
    """Where the fine-tuning of level `t` starts, or is resumed."""

    t: int
    M: sp.csr_matrix | None  # M[t] by cluster, see `shortlist_of`
    held_beams: sp.csr_matrix | None  # P[t-1] of the held-out documents, if it is predicted
    encoder: State  # θ[t-1]
    head: State  # W[t], bootstrapped
    checkpoint: State | None  # a later state of the training of this level


def learn_level(
    encoder: LearningEncoder, problem: TuningProblem, start: LevelStart, log: LevelLog
) -> Arrays:
    """Learn θ[t] and W[t]; return them and Φ_dnn(θ[t]), which is complete on the leader alone."""
    encoder.weights.load_state_dict(start.encoder)
    head = new_head(problem, start.t, encoder.width)
    head.load_state_dict(start.head)
    head.to(encoder.device)
    trainer = LevelTrainer(
        encoder, head, level_task(encoder, problem, start), problem.settings, problem.runtime.reporter
    )
    if start.checkpoint is not None:
        trainer.load_state_dict(start.checkpoint)
    validate = None
    if problem.held_out is not None:
        validate = Validator(problem, start.t, encoder, head, start.held_beams)
    trainer.run(validate, log)
    problem.runtime.reporter.step(problem.step_name("embedding", start.t))
    return {**to_arrays(trainer.weights()), **embedded(encoder, problem)}


def level_task(encoder: LearningEncoder, problem: TuningProblem, start: LevelStart) -> LevelTask:
    """Prepare R̂[t], M[t], batches and the number of steps of a level."""
    t, settings = start.t, problem.settings
    targets = Targets(
        relevance=problem.weighting.of_positives(problem.relevance[t - 1]),
        clusters=start.M if problem.trains_on_shortlists else None,
        child_ptr=problem.tree.child_ptr[t - 1],
        weights=problem.train.weights,
        device=encoder.device,
    )
    batches = Batches(problem.train.tokens.lengths, settings.batch, settings.seed + t)
    return LevelTask(
        t,
        targets,
        batches,
        problem.steps[t - 1],
        warmup=problem.warmup[t - 1],
        weighting=problem.weighting,
    )


def embedded(encoder: LearningEncoder, problem: TuningProblem) -> Arrays:
    """Compute Φ_dnn of the training documents, and of the held-out ones if P is predicted."""
    vectors = {"vectors": encoder.embed(problem.train.tokens)}
    if problem.held_out is not None and problem.predicts_beams:
        vectors["held"] = encoder.embed(problem.held_out.tokens)
    return vectors
