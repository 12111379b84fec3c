"""The first loop of Algorithm 2: the encoder is fine-tuned on ever finer levels of the tree."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from treetop.features.encoders.transformer import Encoder
from treetop.ranking.ranker import shortlist
from treetop.ranking.weights import LabelWeights
from treetop.runtime.arrays import Arrays, part
from treetop.training.finetune.batches import Batches
from treetop.training.finetune.bootstrap import bootstrap_solution, new_head
from treetop.training.finetune.head import Head
from treetop.training.finetune.matcher import Beams, predict_beams
from treetop.training.finetune.network import LearningEncoder
from treetop.training.finetune.problem import TuningProblem
from treetop.training.finetune.runlog import RunLog
from treetop.training.finetune.state import from_arrays, to_arrays
from treetop.training.finetune.targets import Targets
from treetop.training.finetune.trainer import LevelTask, LevelTrainer
from treetop.training.finetune.validation import Validator


class FineTuned(NamedTuple):
    """Results of fine-tuning besides the encoder itself."""

    vectors: np.ndarray  # Φ_dnn(θ*) of the training documents
    head: LabelWeights | None  # W of the labels, if their level was fine-tuned


def fine_tune(encoder: Encoder, problem: TuningProblem, log: RunLog) -> FineTuned:
    """Run the first loop of Algorithm 2, t = 1 … D̂; afterwards, `encoder` holds θ*.

    P is predicted only if it is part of the shortlists. If documents are trained on all nodes, M
    consists of the true parents and is used for bootstrapping alone.
    """
    learning = LearningEncoder(encoder, problem.train.tokens, problem.runtime)
    learner = LevelLearner(learning, problem, log)
    beams: Beams | None = None
    vectors = np.zeros((0, encoder.width), np.float32)
    for t in range(1, problem.levels + 1):
        M = shortlist_of(problem, t, beams)
        # W[t], θ[t] = Iterative_Learn(X, Y[t], C[t], θ[t-1], P[t-1])
        level = log.finished_level(t, partial(learner.learn, t, M, beams, vectors))
        learning.weights.load_state_dict(from_arrays(part(level, "encoder")))
        vectors = np.asarray(level["vectors"])
        if problem.predicts_beams and t < problem.levels:
            # P[t] = Top(W[t]ᵀ Φ_cat(X, θ[t]), k)
            beams = predict_beams(problem, t, M, level, beams)
    log.close()
    learning.finish()
    return FineTuned(vectors, label_weights(problem, level))


def shortlist_of(problem: TuningProblem, t: int, beams: Beams | None) -> sp.csr_matrix | None:
    """Compute M[t], the paper's equation 8, by cluster: shape (N, K[t-1]).

    At level 1, where it is the root's children for every document, return None.
    """
    if t == 1:
        return None
    return shortlist(None if beams is None else beams.train, problem.relevance[t - 2])


def label_weights(problem: TuningProblem, level: Arrays) -> LabelWeights | None:
    """Return W of the last fine-tuned level in the order of the labels; None if it is not theirs."""
    if problem.levels < problem.tree.depth:
        return None
    nodes = problem.tree.node_of
    return LabelWeights(np.asarray(level["head.weight"])[nodes], np.asarray(level["head.bias"])[nodes])


@dataclass(frozen=True)
class LevelLearner:
    """Algorithm 1 with θ not fixed: optimizes a level's objective from θ[t-1] and a bootstrapped W."""

    encoder: LearningEncoder
    problem: TuningProblem
    log: RunLog

    def learn(
        self, t: int, M: sp.csr_matrix | None, beams: Beams | None, vectors: np.ndarray
    ) -> Arrays:
        """Learn θ[t] and W[t]; return them and Φ_dnn(θ[t]). `vectors` are Φ_dnn(θ[t-1])."""
        problem, log, reporter = self.problem, self.log, self.problem.runtime.reporter
        checkpoint = log.load_checkpoint(t)
        head = new_head(problem, t, self.encoder.width)
        settings = problem.settings
        if checkpoint is None and (settings.bootstrap_first if t == 1 else settings.bootstrap):
            self.bootstrap(head, t, M, vectors)
        head.to(self.encoder.device)
        trainer = LevelTrainer(self.encoder, head, self.task(t, M), settings, reporter)
        if checkpoint is not None:
            trainer.load_state_dict(checkpoint)
        validate = None
        if problem.held_out is not None:
            validate = Validator(problem, t, self.encoder, head, beams and beams.held_out)
        log.begin_level(
            t, problem.step_name("fine-tuning", t), step=trainer.step, steps=problem.steps[t - 1]
        )
        trainer.run(validate, log)
        log.write_history()
        reporter.step(problem.step_name("embedding", t))
        return {**to_arrays(trainer.weights()), **self.embedded()}

    def bootstrap(self, head: Head, t: int, M: sp.csr_matrix | None, vectors: np.ndarray) -> None:
        """Initialize W[t] with the solution of the linear solver on `vectors`, or Φ_dnn(θ[0])."""
        problem = self.problem
        problem.runtime.reporter.step(problem.step_name("bootstrap", t))
        if t == 1:
            vectors = self.encoder.embed(problem.train.tokens)
        head.start_from(*bootstrap_solution(problem, t, M, vectors))

    def task(self, t: int, M: sp.csr_matrix | None) -> LevelTask:
        """Prepare R̂[t], M[t], batches and the number of steps of a level."""
        problem, settings = self.problem, self.problem.settings
        targets = Targets(
            relevance=problem.weighting.of_positives(problem.relevance[t - 1]),
            clusters=M if problem.trains_on_shortlists else None,
            child_ptr=problem.tree.child_ptr[t - 1],
            weights=problem.train.weights,
            device=self.encoder.device,
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

    def embedded(self) -> Arrays:
        """Compute Φ_dnn of the training documents, and of the held-out ones if P is predicted."""
        problem = self.problem
        vectors = {"vectors": self.encoder.embed(problem.train.tokens)}
        if problem.held_out is not None and problem.predicts_beams:
            vectors["held"] = self.encoder.embed(problem.held_out.tokens)
        return vectors
