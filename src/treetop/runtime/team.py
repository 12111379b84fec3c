"""Processes that fine-tune and encode together: a leader and its followers.

The leader, process 0, trains as a single process would. Followers wait until it shares work, which all
of them then do together, each on its share. The leader alone reads data, writes files and does what
takes no encoder.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from treetop.runtime.cluster import Cluster


class DismissedError(Exception):
    """Raised in a follower that its leader does not need anymore."""


class Place(NamedTuple):
    """Which process of how many this is, and where process 0 answers; as torchrun names them."""

    rank: int
    size: int
    local_rank: int  # among the processes of its machine
    local_size: int
    address: str
    port: int

    @classmethod
    def of_environment(cls, variables: Mapping[str, str] = os.environ) -> Place | None:
        """Read the place that torchrun has given this process; None if there are no others."""
        if int(variables.get("WORLD_SIZE", "1")) == 1 or "RANK" not in variables:
            return None
        return cls(
            rank=int(variables["RANK"]),
            size=int(variables["WORLD_SIZE"]),
            local_rank=int(variables["LOCAL_RANK"]),
            local_size=int(variables["LOCAL_WORLD_SIZE"]),
            address=variables["MASTER_ADDR"],
            port=int(variables["MASTER_PORT"]),
        )

    def environment(self) -> dict[str, str]:
        """Return the variables from which `of_environment` reads this place."""
        return {
            "RANK": str(self.rank),
            "WORLD_SIZE": str(self.size),
            "LOCAL_RANK": str(self.local_rank),
            "LOCAL_WORLD_SIZE": str(self.local_size),
            "MASTER_ADDR": self.address,
            "MASTER_PORT": str(self.port),
        }


class Team:
    """All processes of a training, seen from one of them. This one is alone: it shares with nobody."""

    rank, size, local_size = 0, 1, 1
    cluster: Cluster | None = None  # which encodes and fine-tunes for this process

    @property
    def leads(self) -> bool:
        """Whether this process is the leader."""
        return self.rank == 0

    def share(self, work: object) -> None:
        """Send work, which is pickled, to all followers, who wait for it in `receive`."""

    def receive(self) -> Any:
        """Wait, without computing, for what the leader shares."""
        raise DismissedError

    def agree(self, value: Any) -> Any:
        """Return the leader's value in all processes."""
        return value

    def add_up(self, values: Any) -> Any:
        """Return the sum of a tensor over the processes."""
        return values

    def everyone(self, values: Any) -> list[Any]:
        """Return the tensors of all processes, which have one shape, by their ranks."""
        return [values]

    def gather(self, rows: np.ndarray, counts: list[int]) -> list[np.ndarray]:
        """Return the rows of all processes, float32, on the leader; `counts` of each are known."""
        return [rows]

    def joined(self, network: Any, some_unused: bool, averaged_apart: Sequence[Any] = ()) -> Any:
        """Wrap a module so that the processes average its gradients.

        `some_unused`: whether the module has weights that get no gradients. The gradients of the
        weights `averaged_apart` are left to `average_rows`.
        """
        return network

    def average_rows(self, gradient: Any) -> None:
        """Average a gradient, of which few rows are not 0, over the processes, in place."""

    def device(self, name: str) -> str:
        """The device of this process, if the runtime names `name`."""
        return name

    def torch_threads(self, threads: int | None, in_order: bool) -> int | None:
        """The threads of torch in this process, of those of its machine; None: torch's own choice.

        `in_order`: whether the results must not depend on the number of processes.
        """
        return 1 if in_order else threads

    @contextmanager
    def failures(self) -> Iterator[None]:
        """Turn failures of another process into one line that names it."""
        yield

    def close(self, failed: bool = False) -> None:
        """Dismiss the followers; if the work has `failed`, they may be in the midst of it."""
