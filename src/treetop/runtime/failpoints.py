"""Faults on request, by which tests see what survives them. Without the variable, nothing fails.

``TREETOP_FAILPOINT`` is a JSON object, or a list of them: ``{"at": "level-1", "step": 3, "process": 1,
"fault": "kill", "once": "FILE"}``. `at` names a stage: ``level-1`` and others that are fine-tuned,
``PIFA``, ``label tree``, ``encoding``, ``rankers`` and ``beam search`` in tasks on a cluster,
``predict``, ``chunks`` of weights, ``before NAME`` and ``after NAME`` for files of a run. With `step`,
only that step or task fails; with `process`, only in the process of that rank; with `node`, only on
that machine; with `once`, only if FILE does not exist yet, and it is created, so that a retry succeeds.

The name of a machine is its host name, or what ``TREETOP_NODE`` says, for machines that share one host.
"""

from __future__ import annotations

import errno
import json
import os
import platform
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

VARIABLE, NODE = "TREETOP_FAILPOINT", "TREETOP_NODE"


def failpoint(
    stage: str, step: int | None = None, file: Path | Callable[[], Path] | None = None
) -> None:
    """Fail here, if the variable says so. `file` is one that was just written, which can be damaged."""
    described = os.environ.get(VARIABLE)
    if not described:
        return
    points = json.loads(described)
    for point in points if isinstance(points, list) else [points]:
        if is_meant(point, stage, step) and claims(point):
            fail(point["fault"], file() if callable(file) else file)


def is_meant(point: dict[str, Any], stage: str, step: int | None) -> bool:
    """Whether a fault is for this stage, step, process and machine."""
    rank = int(os.environ.get("RANK", "0"))
    node = os.environ.get(NODE) or platform.node()
    return (
        point["at"] == stage
        and point.get("step", step) == step
        and int(point.get("process", rank)) == rank
        and point.get("node", node) == node
    )


def claims(point: dict[str, Any]) -> bool:
    """Whether nobody has had this fault yet, if it occurs only once."""
    if "once" not in point:
        return True
    try:
        os.close(os.open(point["once"], os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def fail(fault: str, file: Path | None) -> None:
    """Fail: kill or stop this process, find the disk full, or damage a file."""
    if fault in ("kill", "stop"):
        os.kill(os.getpid(), signal.SIGKILL if fault == "kill" else signal.SIGSTOP)
    elif fault == "disk":
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), None if file is None else str(file))
    elif fault == "truncate" and file is not None:
        os.truncate(file, file.stat().st_size // 2)
    elif fault == "corrupt" and file is not None:
        with file.open("r+b") as damaged:
            damaged.seek(file.stat().st_size // 2)
            damaged.write(b"\xff\x00\xff\x00")
    else:
        raise ValueError(f"no such fault here: {fault}")
