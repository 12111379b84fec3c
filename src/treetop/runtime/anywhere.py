"""Tasks that may run on other machines: on a cluster if one is in use, on threads otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from treetop.runtime import parallel
from treetop.runtime.calls import Item, Remote, Result
from treetop.runtime.cluster import Cluster
from treetop.runtime.runtime import Runtime

# The cluster that trains, while it does. Ray's connection, too, belongs to the whole process.
active: list[Cluster] = []


@contextmanager
def using_cluster(runtime: Runtime) -> Iterator[Cluster | None]:
    """Let `run_anywhere` use the cluster of a runtime, if it has one, during the block."""
    if runtime.cluster is None:
        yield None
        return
    cluster = Cluster(runtime)
    active.append(cluster)
    try:
        yield cluster
    finally:
        active.remove(cluster)
        cluster.close()


def on_cluster() -> bool:
    """Whether `run_anywhere` uses a cluster."""
    return bool(active)


def parallel_tasks(threads: int) -> int:
    """Return how many tasks of `run_anywhere` are computed at the same time."""
    return active[-1].cores if active else threads


def run_anywhere(
    work: Remote[Item, Result],
    tasks: Sequence[Item],
    threads: int,
    advance: Callable[[], object] | None = None,
    consume: Callable[[Item, Result], object] | None = None,
    *,
    stage: str,
) -> list[Result]:
    """Like `parallel.run`, but on the cluster if one is in use; `stage` names it in messages.

    So `work` must be a function of its task that leaves everything else as it is. With `consume`, the
    results are given to it, in any order and by several threads, and none is returned.
    """
    if not active:
        if consume is None:
            return parallel.run(work, tasks, threads, advance)
        parallel.run(lambda task, cancel: consume(task, work(task, cancel)), tasks, threads, advance)
        return []
    results: dict[int, Result] = {}

    def keep(numbered: tuple[int, Item], result: Result) -> None:
        results[numbered[0]] = result

    def numbered_work(numbered: tuple[int, Item], cancel: np.ndarray) -> Result:
        return work(numbered[1], cancel)

    report = advance or (lambda: None)
    if consume is not None:
        active[-1].run(stage, work, tasks, consume, report)
        return []
    active[-1].run(stage, numbered_work, list(enumerate(tasks)), keep, report)
    return [results[number] for number in range(len(tasks))]
