"""What a process of a cluster does: calls, each of one or several tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import numpy as np

from treetop.runtime.failpoints import failpoint
from treetop.runtime.whereabouts import place_here

Item = TypeVar("Item")
Result = TypeVar("Result")
Remote = Callable[[Item, np.ndarray], Result]
# So many calls per worker are made before they get one more task each.
CALLS_PER_SIZE = 4


class Call(NamedTuple):
    """A call of tasks: its number among those of a run, and which attempt it is."""

    stage: str
    run: int
    number: int
    attempt: int

    @property
    def name(self) -> str:
        """The name by which the call is known on the cluster."""
        return f"{self.run}/{self.number}/{self.attempt}"


def call(work: list[Any], tasks: Sequence[Any], called: Call, whereabouts: Any) -> list[Any]:
    """Do tasks in a process of the cluster.

    `work` has one element, the reference to what does them.
    """
    import ray

    # Waits, a millisecond, until that is known: the process may fail at any time.
    ray.get(whereabouts.started.remote(called.stage, called.name, place_here()))
    failpoint(called.stage, called.number)
    do, cancel = opened(work[0]), np.zeros(1, np.uint8)
    return [do(task, cancel) for task in tasks]


@lru_cache(maxsize=1)
def opened(reference: Any) -> Remote[Any, Any]:
    """Return what does the tasks of a run, with its working memory: the next calls use it again."""
    import ray

    work: Remote[Any, Any] = ray.get(reference)
    return work


def growing_groups(tasks: Sequence[Item], workers: int) -> list[Sequence[Item]]:
    """Divide tasks into those of one call: a single one at first, then more and more.

    Where there are many, the first ones are the largest. A call takes milliseconds by itself.
    """
    groups: list[Sequence[Item]] = []
    start = 0
    while start < len(tasks):
        size = 1 + len(groups) // (CALLS_PER_SIZE * workers)
        groups.append(tasks[start : start + size])
        start += size
    return groups
