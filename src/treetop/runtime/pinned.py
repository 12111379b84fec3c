"""Folders that stay the same while they are read, although another process may replace them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from treetop.errors import TreetopError

Result = TypeVar("Result")
HANDLES = Path("/proc/self/fd")  # on Linux
# How often a folder is read again that was replaced in the meantime.
ATTEMPTS = 100


def read_pinned(folder: Path, read: Callable[[Path], Result]) -> Result:
    """Return ``read(path)``, where `path` is `folder` as it is now, whatever takes its place meanwhile.

    On Linux `path` leads through an open handle of the folder. If the folder was replaced while it was
    read, which deletes its files one by one, the new one is read instead. Errors name `folder`.
    """
    for _ in range(ATTEMPTS):
        handle = handle_of(folder)
        if handle is None:
            return read(folder)
        try:
            path = HANDLES / str(handle)
            pinned = path.is_dir()
            try:
                result = read(path if pinned else folder)
            except (TreetopError, OSError) as error:
                if is_current(handle, folder):
                    raise named(error, path, folder) from None
                continue
            if is_current(handle, folder):
                return result
        finally:
            os.close(handle)
    raise TreetopError(f"{folder}: is being replaced again and again: try again later")


def handle_of(folder: Path) -> int | None:
    """Open a folder; None on Windows, or if there is none, which whoever reads it says."""
    try:
        return os.open(folder, os.O_RDONLY)
    except OSError:
        return None


def is_current(handle: int, folder: Path) -> bool:
    """Whether an open folder is still the one at its path."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(folder))
    except FileNotFoundError:
        return False


def named(error: Exception, path: Path, folder: Path) -> TreetopError:
    """Return an error as a `TreetopError` that names the folder, not the path it was read through."""
    message = str(error)
    if isinstance(error, OSError):
        message = f"{error.filename or folder}: cannot be read ({error.strerror or error})"
    return TreetopError(message.replace(str(path), str(folder)))
