"""What people decided, kept in the JSONL that `treetop train` reads."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from treetop.errors import TreetopError
from treetop.serve.limits import Refused

MOST_BYTES = 1 << 30


class Journal:
    """A file that only grows: one line a decision, written in one piece by whichever worker."""

    def __init__(self, path: Path, most: int = MOST_BYTES) -> None:
        self.path, self.most = path, most
        try:
            with path.open("ab"):
                pass
        except OSError as error:
            raise TreetopError(f"{path}: cannot be written ({error.strerror})") from None

    def add(self, text: str, labels: list[str], rejected: list[str]) -> None:
        """Append one decision."""
        record: dict[str, Any] = {"text": text, "labels": labels}
        if rejected:
            record["rejected"] = rejected
        record["time"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        line = (json.dumps(record, ensure_ascii=False) + "\n").encode("utf-8", "replace")
        try:
            # One write to a file opened for appending is not torn apart by another process's.
            handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            try:
                size = os.fstat(handle).st_size
                if size + len(line) > self.most:
                    raise Refused(507, "full", "no more feedback is taken: the file is full")
                written = os.write(handle, line)
                if written < len(line):  # the disk is full: no half line may stay
                    if os.fstat(handle).st_size == size + written:
                        os.ftruncate(handle, size)
                    raise OSError
            finally:
                os.close(handle)
        except OSError:
            raise Refused(507, "full", "feedback could not be written") from None
