"""The first loop of Algorithm 2: the encoder is fine-tuned on ever finer levels of the tree."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from treetop.features.encoders.devices import pick_device
from treetop.features.encoders.transformer import Encoder
from treetop.ranking.matching import shortlist
from treetop.ranking.weights import LabelWeights
from treetop.runtime.arrays import Arrays, part
from treetop.runtime.parallel import torch_threads
from treetop.runtime.progress import Reporter
from treetop.runtime.team import Team
from treetop.training.finetune.bootstrap import bootstrap_solution, new_head
from treetop.training.finetune.fitting import EncoderShape, documents_that_fit
from treetop.training.finetune.head import Head
from treetop.training.finetune.level import LevelStart, learn_level
from treetop.training.finetune.matcher import Beams, predict_beams
from treetop.training.finetune.network import LearningEncoder, learner_of
from treetop.training.finetune.problem import TuningProblem
from treetop.training.finetune.runlog import NoLog, RunLog
from treetop.training.finetune.sharing import DOCUMENTS_PER_PART
from treetop.training.finetune.state import cpu_state, from_arrays

# Work that is shared besides the levels: to embed the training documents, and to compute the layers
# that do not learn.
EMBED, COMPUTE_FROZEN = "embed", "compute frozen layers"


class FineTuned(NamedTuple):
    """Results of fine-tuning besides the encoder itself."""

    vectors: np.ndarray  # Φ_dnn(θ*) of the training documents
    head: LabelWeights | None  # W of the labels, if their level was fine-tuned


def fine_tune(
    encoder: Encoder, problem: TuningProblem, log: RunLog, team: Team | None = None
) -> FineTuned:
    """Run the first loop of Algorithm 2, t = 1 … D̂; afterwards, `encoder` holds θ*.

    P is predicted only if it is part of the shortlists. If documents are trained on all nodes, M
    consists of the true parents and is used for bootstrapping alone. The processes of `team`, of which
    this one is the leader, train each level together.
    """
    team = team or Team()
    most = most_documents(encoder, problem, team)
    shared = FineTuning.share(encoder, problem, team)
    tuned = problem.settings.tuned_layers
    learning = LearningEncoder(encoder, problem.train.tokens, problem.runtime, team, most, tuned)
    learner = LevelLearner(learning, problem, log, shared)
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
    team.share(None)
    learning.finish()
    return FineTuned(vectors, label_weights(problem, level))


def most_documents(encoder: Encoder, problem: TuningProblem, team: Team) -> int:
    """How many documents are computed at once on a CPU, within the memory of the runtime.

    With several processes, which all have to divide a batch in the same way, it is the default.
    """
    device = pick_device(problem.runtime.device)
    if device.type != "cpu" or team.size > 1 or team.cluster is not None:
        return DOCUMENTS_PER_PART
    train, nodes = problem.train, problem.tree.sizes[problem.levels - 1]
    longest = int(train.tokens.lengths.max(initial=1))
    shape = EncoderShape.of(learner_of(encoder, problem.settings.tuned_layers))
    return documents_that_fit(shape, longest, train.tokens.rows, nodes, problem.runtime)


@dataclass(frozen=True)
class FineTuning:
    """The fine-tuning of all levels, as followers know it."""

    encoder: Encoder
    problem: TuningProblem

    @classmethod
    def share(cls, encoder: Encoder, problem: TuningProblem, team: Team) -> Any:
        """Send followers what they need: not the TF-IDF features, which the linear solver reads.

        On a cluster, return a reference to it.
        """
        if team.size == 1 and team.cluster is None:
            return None
        home = pick_device(team.device(problem.runtime.device))
        train, held_out = problem.train, problem.held_out
        nothing = sp.csr_matrix(train.tfidf.shape, dtype=np.float32)
        runtime = replace(problem.runtime, reporter=Reporter(), tensorboard=None, verbose=False)
        light = replace(
            problem,
            train=replace(train, tfidf=nothing),
            held_out=None if held_out is None else replace(held_out, tfidf=nothing),
            feature_map=replace(problem.feature_map, words=None, encoder=None),
            runtime=runtime,
        )
        work = cls(encoder.cpu(), light)
        team.share(work)
        shared = team.cluster and team.cluster.ray.put(work)
        encoder.to(home)
        return shared

    def follow(self, team: Team) -> None:
        """Do a follower's part in each level."""
        runtime = self.problem.runtime
        with torch_threads(team.torch_threads(runtime.threads, runtime.deterministic)):
            encoder = self.encoder.to(pick_device(team.device(runtime.device)))
            tuned = self.problem.settings.tuned_layers
            tokens = self.problem.train.tokens
            learning = LearningEncoder(encoder, tokens, runtime, team, tuned_layers=tuned)
            while (work := team.receive()) is not None:
                if work == EMBED:
                    learning.embed(tokens)
                elif work == COMPUTE_FROZEN:
                    learning.compute_frozen()
                else:
                    learn_level(learning, self.problem, work, NoLog())


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
    shared: Any = None  # encoder and problem on the cluster

    def learn(
        self, t: int, M: sp.csr_matrix | None, beams: Beams | None, vectors: np.ndarray
    ) -> Arrays:
        """Learn θ[t] and W[t]; return them and Φ_dnn(θ[t]). `vectors` are Φ_dnn(θ[t-1])."""
        problem, log = self.problem, self.log
        if self.encoder.waits_for_frozen and self.encoder.team.cluster is None:
            problem.runtime.reporter.step("frozen layers")
            self.encoder.team.share(COMPUTE_FROZEN)
            self.encoder.compute_frozen()
        checkpoint = log.load_checkpoint(t)
        head = new_head(problem, t, self.encoder.width)
        settings = problem.settings
        if checkpoint is None and (settings.bootstrap_first if t == 1 else settings.bootstrap):
            self.bootstrap(head, t, M, vectors)
        start = LevelStart(
            t,
            M,
            held_beams=beams and beams.held_out,
            encoder=cpu_state(self.encoder.weights.state_dict()),
            head=cpu_state(head.state_dict()),
            checkpoint=checkpoint,
        )
        step = 0 if checkpoint is None else int(checkpoint["step"][0])
        log.begin_level(t, problem.step_name("fine-tuning", t), step=step, steps=problem.steps[t - 1])
        level = self.train(start)
        log.write_history()
        return level

    def train(self, start: LevelStart) -> Arrays:
        """Train the level, with followers or on a cluster if there are any."""
        team = self.encoder.team
        if team.cluster is None:
            team.share(start)
            return learn_level(self.encoder, self.problem, start, self.log)
        from treetop.training.finetune.cluster import learn_on_cluster

        return learn_on_cluster(self.shared, self.problem, start, self.log, team.cluster)

    def bootstrap(self, head: Head, t: int, M: sp.csr_matrix | None, vectors: np.ndarray) -> None:
        """Initialize W[t] with the solution of the linear solver on `vectors`, or Φ_dnn(θ[0])."""
        problem = self.problem
        problem.runtime.reporter.step(problem.step_name("bootstrap", t))
        if t == 1:
            self.encoder.team.share(EMBED)
            vectors = self.encoder.embed(problem.train.tokens)
        head.start_from(*bootstrap_solution(problem, t, M, vectors))
