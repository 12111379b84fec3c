"""How much memory this process uses, and a limit that it keeps."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from treetop.errors import TreetopError
from treetop.runtime.cancelling import Cancel, CancelledError, current

UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
STATUS = Path("/proc/self/status")
MACHINE, CONTAINER = Path("/proc/meminfo"), Path("/sys/fs/cgroup/memory.max")
SECONDS_BETWEEN_LOOKS = 0.02
ADVICE = "raise memory, or train with fewer threads or features (max_features, ngrams=word:1)"


def size_text(size: int) -> str:
    """A number of bytes in MB, or in KB if it is less than one MB."""
    return f"{size / 1e6:,.1f} MB" if size >= 1e6 else f"{size / 1e3:,.1f} KB"


def parse_size(text: str) -> int:
    """Convert a size such as ``200MB`` to a number of bytes."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", text)
    if not match or match[2].upper() not in UNITS:
        raise TreetopError(f"size {text!r} is not understood: write it as 200MB or 1.5GB")
    return int(float(match[1]) * UNITS[match[2].upper()])


def memory_in_use() -> int:
    """Bytes that this process has in memory, with those of mapped files; 0 where that is not known."""
    return status_bytes("VmRSS")


def peak_memory() -> int:
    """The most bytes that this process has had in memory; 0 where that is not known."""
    if peak := status_bytes("VmHWM"):
        return peak
    try:
        import resource
    except ImportError:  # Windows
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def available_memory(used: int) -> int:
    """The most bytes this process could have, which has `used` now; 0 where that is not known."""
    free = status_bytes("MemAvailable", MACHINE)
    limits = [used + free] if free else []
    with suppress(OSError, ValueError):  # no container, or one without a limit
        limits.append(int(CONTAINER.read_text("ascii")))
    return min(limits, default=0)


def status_bytes(name: str, file: Path | None = None) -> int:
    """A size that Linux states in a file about this process or the machine; 0 on other systems."""
    try:
        lines = (file or STATUS).read_text("ascii").splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith(f"{name}:")), 0)


@contextmanager
def memory_limit(limit: int | None) -> Iterator[None]:
    """Stop the work of the block with an error when this process has more in memory; None: no limit.

    Work is stopped where it can be interrupted, in parallel runs.
    """
    if limit is None:
        yield
        return
    outer, cancel, over = current.cancel, Cancel(current.cancel), threading.Event()
    done = threading.Event()

    def look() -> None:
        while not done.wait(SECONDS_BETWEEN_LOOKS):
            if memory_in_use() > limit:
                over.set()
                cancel.set()
                return

    watcher = threading.Thread(target=look, daemon=True)
    current.cancel = cancel
    watcher.start()
    try:
        yield
    except CancelledError:
        if not over.is_set():
            raise
        raise TreetopError(
            f"training was stopped because it took more than memory={size_text(limit)}: {ADVICE}"
        ) from None
    finally:
        done.set()
        watcher.join()
        cancel.end()
        current.cancel = outer
