"""The team of a training: started by `--processes` or `Runtime(processes=…)`, or by torchrun."""

from __future__ import annotations

import os
import platform
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from treetop.errors import TreetopError
from treetop.runtime.anywhere import active
from treetop.runtime.process_group import LOOPBACK, ProcessTeam
from treetop.runtime.runtime import Runtime
from treetop.runtime.team import Place, Team

# Torch would write where in its code it noticed that another process has ended.
QUIET = {"TORCH_CPP_LOG_LEVEL": "ERROR"}
# The module that a follower runs, and the variable that tells it when others have failed.
FOLLOWING, STALL_SECONDS = "treetop.training.finetune.following", "TREETOP_STALL_SECONDS"


class StartedTeam(ProcessTeam):
    """A team whose followers this process has started, and ends."""

    def __init__(self, followers: list[subprocess.Popen[bytes]], *arguments: Any) -> None:
        self.followers = followers
        super().__init__(*arguments)

    def failure(self) -> TreetopError:
        """Return the error about the follower that has ended, if one has."""
        with suppress(subprocess.TimeoutExpired):  # its connection may end before it does
            self.followers[0].wait(0.5)
        for rank, follower in enumerate(self.followers, start=1):
            if follower.poll():
                return TreetopError(
                    f"process {rank} of {self.size} ({platform.node()}, process {follower.pid}) "
                    f"{how_it_ended(follower.returncode)}: run again with --resume (resume=True) to "
                    "continue from the last checkpoint"
                )
        return super().failure()

    def close(self, failed: bool = False) -> None:
        """Dismiss the followers, or end them."""
        if failed:
            end(self.followers, patience=0)
        super().close(failed)
        end(self.followers)


def how_it_ended(code: int) -> str:
    """Describe the exit code of a process that has failed."""
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"failed (exit code {code})"


def start_team(size: int, stall_seconds: float) -> Team:
    """Start the followers of this process on this machine and meet them."""
    if size == 1:
        return Team()
    followers: list[subprocess.Popen[bytes]] = []
    with socket.socket() as listening:
        listening.bind((LOOPBACK, 0))
        listening.listen()
        port = listening.getsockname()[1]
        places = [Place(rank, size, rank, size, LOOPBACK, port) for rank in range(size)]
        try:
            for place in places[1:]:
                followers.append(start_follower(place, stall_seconds))
            return StartedTeam(followers, places[0], stall_seconds, listening.detach())
        except BaseException:
            end(followers, patience=0)
            raise


def start_follower(place: Place, stall_seconds: float) -> subprocess.Popen[bytes]:
    """Start a follower; Ctrl-C is not for it but for the leader, which dismisses its followers."""
    return subprocess.Popen(
        [sys.executable, "-m", FOLLOWING],
        env={**QUIET, **os.environ, **place.environment(), STALL_SECONDS: str(stall_seconds)},
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )


def end(processes: list[subprocess.Popen[bytes]], patience: float = 10) -> None:
    """Wait until processes have ended, and kill those that have not."""
    until = time.monotonic() + patience
    for process in processes:
        try:
            process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


# The team that torchrun has started, while this process belongs to it.
_joined: list[Team] = []


@contextmanager
def joined_by_torchrun(stall_seconds: float) -> Iterator[Team]:
    """Join the other processes that torchrun has started, if it has; yields a team of one otherwise."""
    place = Place.of_environment()
    if place is None:
        yield Team()
        return
    team = ProcessTeam(place, stall_seconds)
    _joined.append(team)
    failed = True
    try:
        yield team
        failed = False
    finally:
        _joined.clear()
        team.close(failed)


def team_for(runtime: Runtime) -> Team:
    """Return the team of a training: that of torchrun, or one that is started for it.

    A cluster that is in use starts its processes itself.
    """
    if active:
        team = Team()
        team.cluster = active[-1]
        return team
    if _joined:
        if runtime.processes not in (1, _joined[0].size):
            raise TreetopError(
                f"processes is {runtime.processes}, but torchrun started {_joined[0].size}: leave out "
                "processes"
            )
        return _joined[0]
    if Place.of_environment() is not None:
        raise TreetopError(
            "torchrun starts the command, not a program that calls fit: run torchrun … -m treetop "
            "train, or pass runtime=Runtime(processes=…)"
        )
    return start_team(runtime.processes, 60 * runtime.stall_minutes)


def leave(team: Team, failed: bool) -> None:
    """End a team that was started for a training; that of torchrun may be needed for another."""
    if team not in _joined:
        team.close(failed)
