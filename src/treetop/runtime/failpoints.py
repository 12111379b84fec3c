"""Faults on request, by which tests see what survives them. Without the variable, nothing fails.

``TREETOP_FAILPOINT`` is a JSON object, or a list of them: ``{"at": "level-1", "step": 3, "process": 1,
"fault": "kill", "once": "FILE"}``. `at` names a stage. With `step`, only that step of it fails; with
`process`, only in the process of that rank; with `once`, only if FILE does not exist yet, and it is
created, so that a retry succeeds.
"""

from __future__ import annotations

import errno
import json
import os
import signal
from pathlib import Path
from typing import Any

VARIABLE = "TREETOP_FAILPOINT"


def failpoint(stage: str, step: int | None = None, file: Path | None = None) -> None:
    """Fail here, if the variable says so. `file` is one that was just written, which can be damaged."""
    described = os.environ.get(VARIABLE)
    if not described:
        return
    points = json.loads(described)
    for point in points if isinstance(points, list) else [points]:
        if is_meant(point, stage, step) and claims(point):
            fail(point["fault"], file)


def is_meant(point: dict[str, Any], stage: str, step: int | None) -> bool:
    """Whether a fault is for this stage, step and process."""
    rank = int(os.environ.get("RANK", "0"))
    return (
        point["at"] == stage
        and point.get("step", step) == step
        and int(point.get("process", rank)) == rank
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
