"""Signs of life of the processes of a team, which tell who has failed."""

from __future__ import annotations

import os
import platform
import threading
import time
from contextlib import suppress

from treetop.runtime.team import Place

SECONDS_BETWEEN_BEATS = 1.0


class Beats:
    """Signs of life that each process gives every second, by which others know who is missing."""

    def __init__(self, place: Place, attempt: str) -> None:
        from torch.distributed import PrefixStore, TCPStore  # type: ignore[attr-defined]

        # A connection of its own: the other one is busy while it waits.
        client = TCPStore(place.address, place.port, is_master=False, wait_for_workers=False)
        self.store = PrefixStore(f"beats-{attempt}", client)
        self.place, self.ended = place, threading.Event()
        self.store.set(f"node-{place.rank}", f"{platform.node()}, process {os.getpid()}")
        self.beat()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def beat(self) -> None:
        """Give a sign of life."""
        self.store.add(f"beat-{self.place.rank}", 1)

    def run(self) -> None:
        """Beat until `stop`, or until nobody listens."""
        with suppress(RuntimeError):
            while not self.ended.wait(SECONDS_BETWEEN_BEATS):
                self.beat()

    def counts(self) -> list[int]:
        """Return how often each process has given a sign of life."""
        return [self.store.add(f"beat-{rank}", 0) for rank in range(self.place.size)]

    def silent(self) -> list[str]:
        """Return the processes that give no sign of life anymore, with their machines."""
        try:
            before = self.counts()
            time.sleep(3 * SECONDS_BETWEEN_BEATS)
            missing = [rank for rank, count in enumerate(self.counts()) if count == before[rank]]
            nodes = [self.store.get(f"node-{rank}").decode() for rank in missing]
        except RuntimeError:
            return ["process 0"]
        return [
            f"process {rank} of {self.place.size} ({node})"
            for rank, node in zip(missing, nodes, strict=True)
        ]

    def stop(self) -> None:
        """Give no more signs of life."""
        self.ended.set()
        self.thread.join()
