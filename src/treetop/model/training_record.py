"""Where time and memory went when a model was trained: training.json, beside the model's own files.

It is not a part of the model: it says something about the machine, so the same model has another one
elsewhere. config.json does not list it, and a model that is saved again has none.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from treetop.model.layout import RECORD
from treetop.runtime.files import replacing_file


@dataclass(frozen=True)
class TrainingRecord:
    """Seconds of each stage, in their order, and the most memory that the process has had."""

    seconds: Mapping[str, float]
    peak_bytes: int

    def write(self, folder: Path) -> None:
        """Write it to a model folder."""
        values = {name: round(seconds, 3) for name, seconds in self.seconds.items()}
        text = json.dumps({"seconds": values, "peak_bytes": self.peak_bytes}, indent=2)
        with replacing_file(folder / RECORD) as file:
            file.write(text + "\n")

    @classmethod
    def read(cls, folder: Path) -> TrainingRecord | None:
        """Read it from a model folder; None if there is none, or none that can be read."""
        try:
            values = json.loads((folder / RECORD).read_text("utf-8"))
            seconds = {str(name): float(value) for name, value in values["seconds"].items()}
            record = cls(seconds, int(values["peak_bytes"]))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None
        usable = all(0 <= value < math.inf for value in seconds.values())
        return record if usable and record.peak_bytes >= 0 else None
