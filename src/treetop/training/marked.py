"""Files of a run: arrays with a fingerprint of what they depend on, and a checksum."""

from __future__ import annotations

import re
import zlib
from pathlib import Path

import numpy as np

from treetop.errors import TreetopError
from treetop.runtime.arrays import Arrays, read_arrays, write_tensors
from treetop.runtime.failpoints import failpoint
from treetop.runtime.files import replacing_file

MARK = "fingerprint"
FINGERPRINT = re.compile("[0-9a-f]{32}")


def read_marked(path: Path, mark: str) -> Arrays | None:
    """Read the arrays of a file; None if it has another fingerprint than `mark`, or is damaged."""
    if fingerprint_of(path) != mark:
        return None
    arrays = read_arrays(path)
    _, _, digest = mark_text(arrays.pop(MARK)).partition(" ")
    return arrays if digest == values_checksum(arrays) else None


def read_unchecked(path: Path) -> Arrays:
    """Read the arrays of a file that has just been written."""
    arrays = read_arrays(path)
    del arrays[MARK]
    return arrays


def fingerprint_of(path: Path) -> str | None:
    """Return the fingerprint in a file; None if it cannot be read: it may be missing, cut or empty."""
    try:
        mark = mark_text(read_arrays(path)[MARK]).partition(" ")[0] if path.is_file() else ""
    except (TreetopError, LookupError):
        return None
    return mark if FINGERPRINT.fullmatch(mark) else None


def write_marked(path: Path, mark: str, arrays: Arrays) -> None:
    """Write arrays atomically, with their fingerprint and a checksum."""
    text = f"{mark} {values_checksum(arrays)}"
    marked = {**arrays, MARK: np.frombuffer(text.encode(), np.uint8)}
    failpoint(f"before {path.name}", file=path)
    with replacing_file(path, "wb") as file:
        write_tensors(file, marked)
    failpoint(f"after {path.name}", file=path)


def mark_text(values: np.ndarray) -> str:
    """Convert the bytes of a text in ASCII back."""
    return values.tobytes().decode("ascii", "replace")


def values_checksum(arrays: Arrays) -> str:
    """Compute a checksum of the values of arrays, which tells whether the disk has changed them."""
    value = 0
    for name in sorted(arrays):
        value = zlib.crc32(np.ascontiguousarray(arrays[name]).reshape(-1).view(np.uint8).data, value)
    return f"{value:08x}"
