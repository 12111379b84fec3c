"""Large arrays on disk instead of in memory, in temporary files that are gone when nobody uses them."""

from __future__ import annotations

import math
import mmap
import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from treetop.errors import TreetopError
from treetop.runtime.temporary import has_temporary_folder

# Up to this many bytes stay in memory.
IN_MEMORY = 32 << 20


@contextmanager
def temporary_space() -> Iterator[None]:
    """Say in one line that there is no space for temporary files, and what to do."""
    try:
        yield
    except OSError as error:
        folder = tempfile.gettempdir() if has_temporary_folder() else "any folder"
        raise TreetopError(
            f"temporary files cannot be written to {folder} ({error.strerror or error}): set TMPDIR "
            "to a folder with more space"
        ) from None


def damaged() -> TreetopError:
    """Return the error to raise if a temporary file is not what was written to it."""
    folder = tempfile.gettempdir() if has_temporary_folder() else "its folder"
    return TreetopError(
        f"a temporary file in {folder} was cut off or damaged: train again, or set TMPDIR to a folder "
        "on another disk"
    )


class ArrayFile:
    """Arrays that are written one after the other and read back in any order, by any thread."""

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(IN_MEMORY, prefix="treetop-")  # noqa: SIM115
        self._lock, self._size = threading.Lock(), 0
        self._descriptor: int | None = None  # of the file as soon as it is on disk

    def append(self, array: np.ndarray) -> int:
        """Write an array; returns its offset in bytes."""
        content = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
        with self._lock, temporary_space():
            offset = self._size
            self._file.seek(offset)
            self._file.write(content)
            self._size += len(content)
            if self._size > IN_MEMORY and hasattr(os, "preadv"):  # not on Windows
                self._file.flush()
                self._descriptor = self._file.fileno()
        return offset

    def read(self, offset: int, count: int, dtype: Any) -> np.ndarray:
        """Read so many values of a type from an offset on."""
        values = np.empty(count, dtype)
        if self._descriptor is not None:  # no thread waits for another
            with temporary_space():
                size = os.preadv(self._descriptor, [values.reshape(-1).view(np.uint8).data], offset)
            if size < values.nbytes:
                raise damaged()
            return values
        with self._lock, temporary_space():
            self._file.seek(offset)
            content = self._file.read(values.nbytes)
        if len(content) < values.nbytes:
            raise damaged()
        values.view(np.uint8)[:] = np.frombuffer(content, np.uint8)
        return values

    def path(self) -> Path:
        """A name of the open file, which has none in its folder (Linux only); see `failpoint`."""
        with self._lock:
            self._file.flush()
            return Path(f"/proc/self/fd/{self._file.fileno()}")


class Shelf:
    """Keeps arrays: in memory up to `limit` bytes in all, the others mapped from a temporary file."""

    def __init__(self, limit: int) -> None:
        self.free_bytes = limit
        self.file: IO[bytes] | None = None

    def put(self, array: np.ndarray) -> np.ndarray:
        """The same array, in memory or mapped from the file."""
        if self.free_bytes >= array.nbytes:
            self.free_bytes -= array.nbytes
            return array
        with temporary_space():
            self.file = self.file or tempfile.TemporaryFile(prefix="treetop-")  # noqa: SIM115
            start = -(-self.file.seek(0, 2) // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY
            self.file.seek(start)
            self.file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
            self.file.flush()
        if not array.size:
            return array
        view = mmap.mmap(self.file.fileno(), array.nbytes, access=mmap.ACCESS_READ, offset=start)
        return np.frombuffer(view, array.dtype).reshape(array.shape)


class NewArray:
    """An array that is written part by part, in any order and by any thread.

    One of more than `limit` bytes is a file, which `finished` maps: until they are read, its
    values take none.
    """

    def __init__(self, shape: tuple[int, ...], dtype: Any, limit: int | None = None) -> None:
        self.shape, self.dtype = shape, np.dtype(dtype)
        size = self.dtype.itemsize * math.prod(shape)
        small = size <= (IN_MEMORY if limit is None else limit)
        self._values = np.zeros(shape, dtype) if small else None
        self._lock = threading.Lock()
        if self._values is None:
            with temporary_space():
                self._file = tempfile.TemporaryFile(prefix="treetop-")  # noqa: SIM115
                self._file.truncate(size)

    def write(self, first: int, rows: np.ndarray) -> None:
        """Write consecutive rows, the first of which has the number `first`."""
        if self._values is not None:
            self._values[first : first + len(rows)] = rows
            return
        with self._lock, temporary_space():
            self._file.seek(first * self.dtype.itemsize * math.prod(self.shape[1:]))
            self._file.write(np.ascontiguousarray(rows, self.dtype).reshape(-1).view(np.uint8).data)

    def finished(self) -> np.ndarray:
        """The array, read-only."""
        if self._values is not None:
            self._values.flags.writeable = False
            return self._values
        with temporary_space():
            self._file.flush()
            view = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        self._file.close()
        return np.frombuffer(view, self.dtype).reshape(self.shape)


def off_memory(array: np.ndarray) -> np.ndarray:
    """The same array; a large one is mapped from a temporary file: it takes no memory until read."""
    if array.nbytes <= IN_MEMORY:
        return array
    new = NewArray(array.shape, array.dtype)
    step = max(1, IN_MEMORY // max(1, array[:1].nbytes))
    for first in range(0, len(array), step):
        new.write(first, array[first : first + step])
    return new.finished()
