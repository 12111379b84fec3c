"""What a follower does: its part of the work that the leader of its team shares."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from typing import Protocol

from treetop.errors import TreetopError
from treetop.runtime.process_group import ProcessTeam
from treetop.runtime.processes import STALL_SECONDS
from treetop.runtime.team import DismissedError, Place, Team


class SharedWork(Protocol):
    """SharedWork that a leader shares; it is pickled."""

    def follow(self, team: Team) -> None:
        """Do this process's part."""


def follow(team: Team) -> None:
    """Take part in the work that the leader shares, until it dismisses its followers."""
    with suppress(DismissedError), team.failures():
        while True:
            work: SharedWork = team.receive()
            work.follow(team)


def main() -> int:
    """Follow the leader that started this process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    place = Place.of_environment()
    assert place is not None
    try:
        team = ProcessTeam(place, float(os.environ[STALL_SECONDS]))
        follow(team)
        team.close()
    except TreetopError as error:
        sys.stderr.write(f"treetop: process {place.rank}: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
