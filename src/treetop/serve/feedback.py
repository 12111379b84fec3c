"""Save the decisions of users as JSONL that `treetop train` reads."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from treetop.runtime.files import unwritable
from treetop.serve.errors import RequestError

MAX_BYTES = 1 << 30


class Journal:
    """An append-only file with one decision per line; several processes may write to it."""

    def __init__(self, path: Path, max_bytes: int = MAX_BYTES) -> None:
        self.path, self.max_bytes = path, max_bytes
        try:
            with path.open("ab"):
                pass
        except OSError as error:
            raise unwritable(path, error) from None

    def add(self, text: str, labels: list[str], rejected: list[str]) -> None:
        """Append a decision; answers 507 if the file or the disk is full."""
        record: dict[str, Any] = {"text": text, "labels": labels}
        if rejected:
            record["rejected"] = rejected
        record["time"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        line = (json.dumps(record, ensure_ascii=False) + "\n").encode("utf-8", "replace")
        try:
            # A single write in append mode is not interleaved with those of other processes.
            descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            try:
                size = os.fstat(descriptor).st_size
                if size + len(line) > self.max_bytes:
                    raise RequestError(507, "full", "Feedback file is full")
                written = os.write(descriptor, line)
                if written < len(line):  # the disk is full: do not leave half a line
                    if os.fstat(descriptor).st_size == size + written:
                        os.ftruncate(descriptor, size)
                    raise OSError
            finally:
                os.close(descriptor)
        except OSError:
            raise RequestError(507, "full", "Feedback could not be written") from None
