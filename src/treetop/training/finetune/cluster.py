"""Fine-tuning on a Ray cluster: Ray Train's TorchTrainer runs the same training loop.

The leader of a level is a worker of Ray Train here, and its log is kept by an actor: this process reads
it there and writes it to the run's folder, so machines need no folder in common.
"""

from __future__ import annotations

import math
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from treetop.errors import TreetopError
from treetop.runtime.arrays import Arrays
from treetop.runtime.background import Later
from treetop.runtime.cluster import RETRIES, Cluster
from treetop.runtime.parallel import torch_threads
from treetop.runtime.process_group import GroupTeam
from treetop.runtime.whereabouts import pinned_here, place_here
from treetop.training.finetune.level import LevelStart, learn_level
from treetop.training.finetune.network import LearningEncoder
from treetop.training.finetune.problem import TuningProblem
from treetop.training.finetune.runlog import Figures, NoLog, RunLog
from treetop.training.finetune.state import State, copied

SECONDS_BETWEEN_READINGS = 0.5


class News(NamedTuple):
    """What has happened in a level since the driver last asked."""

    figures: list[Figures]
    checkpoint: State | None
    starts: int
    failed: list[str]  # processes, with their machines


class Keeper:
    """An actor with the log of a level: its metrics, its last checkpoint and its result."""

    def __init__(self, checkpoint: State | None) -> None:
        self.checkpoint, self.result = checkpoint, Arrays()
        self.figures: list[Figures] = []
        self.starts, self.changed = 0, False
        self.places: dict[int, str] = {}
        self.failed: list[str] = []

    def start(self) -> State | None:
        """Return where to start, or to start again."""
        self.starts += 1
        return self.checkpoint

    def join(self, rank: int, place: str) -> None:
        """Note where a process runs."""
        self.places[rank] = place

    def lose(self, failed: list[int], missed: list[int]) -> None:
        """Note that processes have failed; if none has, those that others (`missed`) waited for."""
        silent = [rank for rank in sorted(self.places) if missed and rank not in missed]
        self.failed += [
            f"process {rank} ({self.places.get(rank, 'not started')})"
            for rank in failed or silent or missed
        ]

    def record(self, figures: Figures) -> None:
        """Keep metrics; those of steps that are repeated replace the earlier ones."""
        self.figures = [one for one in self.figures if one["step"] < figures["step"]] + [figures]

    def save(self, state: State) -> None:
        """Keep a checkpoint."""
        self.checkpoint, self.changed = state, True

    def finish(self, result: Arrays) -> None:
        """Keep the result of the level."""
        self.result = result

    def news(self, after: float) -> News:
        """Return what is new since the last call; metrics since step `after`."""
        checkpoint = self.checkpoint if self.changed else None
        figures = [one for one in self.figures if one["step"] > after]
        news = News(figures, checkpoint, self.starts, self.failed)
        self.changed, self.failed = False, []
        return news

    def finished(self) -> Arrays:
        """Return the result of the level."""
        return self.result


class KeeperLog:
    """The log of the leader of a level, which an actor keeps."""

    def __init__(self, keeper: Any, ray: Any, seconds: float) -> None:
        self.keeper, self.ray, self.seconds = keeper, ray, seconds
        self.saved_at = time.monotonic()

    def record(self, figures: Figures) -> None:
        """Send metrics."""
        self.ray.get(self.keeper.record.remote(figures))

    def save_checkpoint(self, t: int, state: State) -> None:
        """Send a checkpoint if enough time has passed since the last one."""
        if time.monotonic() - self.saved_at >= self.seconds:
            self.ray.get(self.keeper.save.remote(copied(state)))
            self.saved_at = time.monotonic()


def work_on_level(parts: dict[str, Any]) -> None:
    """Train a level, in each worker of Ray Train; its first one leads."""
    import ray
    from ray import train

    context = train.get_context()
    team = GroupTeam(context.get_world_rank(), context.get_world_size(), context.get_local_rank(), 1)
    shared = ray.get(parts["shared"][0])
    encoder, problem = shared.encoder, with_own_labels(shared.problem)
    start: LevelStart = ray.get(parts["start"][0])
    keeper, runtime = parts["keeper"], problem.runtime
    ray.get(keeper.join.remote(team.rank, place_here()))
    checkpoint = ray.get(keeper.start.remote()) if team.leads else None
    start = start._replace(checkpoint=team.agree(checkpoint))
    threads = team.torch_threads(int(parts["threads"]), runtime.deterministic)
    with torch_threads(threads):
        encoder = encoder.to(train.torch.get_device())
        tuned = problem.settings.tuned_layers
        learning = LearningEncoder(encoder, problem.train.tokens, runtime, team, tuned_layers=tuned)
        log = KeeperLog(keeper, ray, 60 * runtime.checkpoint_minutes) if team.leads else NoLog()
        level = learn_level(learning, problem, start, log)
    if team.leads:
        ray.get(keeper.finish.remote(level))


def with_own_labels(problem: TuningProblem) -> TuningProblem:
    """Copy the label matrices: scipy writes to them, and arrays of the object store are read-only."""
    train, held_out = problem.train, problem.held_out
    return replace(
        problem,
        train=replace(train, Y=train.Y.copy()),
        held_out=held_out and replace(held_out, Y=held_out.Y.copy()),
    )


def learn_on_cluster(
    shared: Any, problem: TuningProblem, start: LevelStart, log: RunLog, cluster: Cluster
) -> Arrays:
    """Learn a level by Ray Train, which starts the workers again if one fails; as `learn_level`.

    `shared` refers to the encoder and the problem in Ray's object store.
    """
    ray = cluster.ray
    from ray.train import FailureConfig, RunConfig, ScalingConfig
    from ray.train.torch import TorchConfig, TorchTrainer

    keeper = pinned_here(ray, Keeper, start.checkpoint)
    workers, threads = workers_of(problem, cluster)
    with tempfile.TemporaryDirectory(prefix="treetop-ray-") as folder:
        trainer = TorchTrainer(
            work_on_level,
            train_loop_config={
                # Within a list, a reference is passed on as it is.
                "shared": [shared],
                "start": [ray.put(start._replace(checkpoint=None))],
                "keeper": keeper,
                "threads": threads,
            },
            scaling_config=ScalingConfig(
                num_workers=workers,
                use_gpu=cluster.gpus > 0,
                resources_per_worker={"CPU": threads, **({"GPU": 1} if cluster.gpus else {})},
            ),
            torch_config=TorchConfig(timeout_s=math.ceil(cluster.stall_seconds)),
            run_config=RunConfig(
                storage_path=str(Path(folder).resolve()),
                callbacks=[failure_callback(keeper)],
                failure_config=FailureConfig(max_failures=RETRIES),
            ),
        )
        training = Later(trainer.fit)
        follow_training(training, keeper, start.t, log, cluster)
        try:
            training.result()
        except TreetopError:
            raise
        except Exception as error:
            reason = str(error).strip().splitlines()[-1]
            raise TreetopError(
                f"fine-tuning on the cluster failed ({reason}): run again with --resume (resume=True)"
            ) from error
    level: Arrays = ray.get(keeper.finished.remote())
    ray.kill(keeper)
    return {name: np.array(values) for name, values in level.items()}


def failure_callback(keeper: Any) -> Any:
    """Return a callback of Ray Train that tells the actor which processes have failed."""
    from ray.train import UserCallback

    class Failures(UserCallback):  # type: ignore[misc]
        """Tells processes that have failed from those that waited for them in vain."""

        def after_exception(self, run_context: Any, worker_exceptions: dict[int, Exception]) -> None:
            """Called by the controller."""
            waiting = ("gloo", "nccl", "connection")
            missed = [
                rank
                for rank, error in worker_exceptions.items()
                if type(error).__name__ == "UserExceptionWithTraceback"
                and any(word in str(error).lower() for word in waiting)
            ]
            keeper.lose.remote(sorted(worker_exceptions.keys() - missed), sorted(missed))

    return Failures()


def follow_training(training: Later[Any], keeper: Any, t: int, log: RunLog, cluster: Cluster) -> None:
    """Write what the actor has been told to the log, until the training of level `t` ends."""
    last, known_starts, runs = -1.0, 1, True
    while runs:
        runs = training.runs
        news: News = cluster.ray.get(keeper.news.remote(last))
        for entry in news.figures:
            log.record(entry)
            last = entry["step"]
        if news.checkpoint is not None:
            log.save_checkpoint(t, news.checkpoint)
        cluster.note_lost_nodes()
        for process in news.failed:
            cluster.reporter.note(f"{process} of fine-tuning has failed")
        if news.starts > known_starts:
            cluster.reporter.note("fine-tuning continues from the last checkpoint")
            known_starts = news.starts
        if runs:
            training.wait(SECONDS_BETWEEN_READINGS)


def workers_of(problem: TuningProblem, cluster: Cluster) -> tuple[int, int]:
    """Return how many workers train, and the threads of each: one per GPU, else one per machine."""
    machines = [n["Resources"] for n in cluster.ray.nodes() if n["Alive"] and n["Resources"].get("CPU")]
    if cluster.gpus:
        counts = [int(machine.get("GPU", 0)) for machine in machines]
        threads = [int(m["CPU"]) // c for m, c in zip(machines, counts, strict=True) if c]
        return problem.runtime.processes if problem.runtime.processes > 1 else sum(counts), max(
            1, min(threads)
        )
    workers = problem.runtime.processes if problem.runtime.processes > 1 else len(machines)
    per_machine = -(-workers // len(machines))
    return workers, max(1, min(int(machine["CPU"]) for machine in machines) // per_machine)
