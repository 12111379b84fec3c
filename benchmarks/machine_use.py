"""How much of the machine other programs use meanwhile, which decides whether a timing is valid."""

import os
import time
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def busy_seconds() -> float:
    """CPU seconds that all programs have used, and that the hypervisor has taken, since boot."""
    user, nice, system, _, _, irq, soft, steal = map(
        int, Path("/proc/stat").read_text().split("\n")[0].split()[1:9]
    )
    return (user + nice + system + irq + soft + steal) / TICKS


def own_seconds() -> float:
    """CPU seconds of this process, of those below it, and of those that have ended and were awaited."""
    parents: dict[int, int] = {}
    used: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            parents[int(folder.name)] = int(fields[1])
            used[int(folder.name)] = sum(map(int, fields[11:15]))
    own = {os.getpid()}
    while below := {child for child, parent in parents.items() if parent in own} - own:
        own |= below
    return sum(used[process] for process in own) / TICKS


class Use:
    """The time and the CPU seconds of a block, those of other programs apart."""

    def __enter__(self) -> "Use":
        self.started = time.perf_counter()
        self.busy, self.own = busy_seconds(), own_seconds()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self.started
        self.own = own_seconds() - self.own
        self.others = max(0.0, busy_seconds() - self.busy - self.own)

    @property
    def others_share(self) -> float:
        """CPU seconds of other programs per second."""
        return self.others / self.seconds
