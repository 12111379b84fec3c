"""Where the tasks on a cluster run, so that messages can name the machine that has failed."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from typing import Any


class Whereabouts:
    """An actor that tasks tell where they start."""

    def __init__(self) -> None:
        self.places: dict[str, str] = {}

    def started(self, task: str, place: str) -> str | None:
        """Note where a task starts; return where it was started before, if it was."""
        earlier = self.places.get(task)
        self.places[task] = place
        return earlier

    def of(self, tasks: list[str]) -> list[str]:
        """Return the places of tasks, without those that have not been started."""
        return sorted({self.places[task] for task in tasks if task in self.places})


def place_here(ray: Any) -> str:
    """Name the machine and the number of this process."""
    return f"{platform.node()} ({ray.util.get_node_ip_address()}), process {os.getpid()}"


def pinned_here(ray: Any, kind: type, *arguments: object) -> Any:
    """Start an actor on the machine of this process; it takes no core from others."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    return ray.remote(kind).options(num_cpus=0, scheduling_strategy=here).remote(*arguments)


def places_listed(places: Iterable[str]) -> str:
    """Join the names of places for a message."""
    return " and ".join(places) or "machines that have not started them"
