"""Files and folders that are whole or not there: written beside their place, then moved into it.

On any error, and when the process is killed, what was there before stays as it was.
"""

from __future__ import annotations

import ctypes
import json
import os
import secrets
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Literal, overload

from treetop.errors import TreetopError


def json_lines(entries: Iterable[Mapping[str, Any]]) -> str:
    """A line of JSON for each entry."""
    return "".join(json.dumps(entry) + "\n" for entry in entries)


def part_of(path: Path) -> Path:
    """Where a file is written before it is moved into place."""
    return path.parent / f".{path.name}.part"


@overload
def replacing_file(path: Path, mode: Literal["w"] = ...) -> AbstractContextManager[IO[str]]: ...
@overload
def replacing_file(path: Path, mode: Literal["wb"]) -> AbstractContextManager[IO[bytes]]: ...
@contextmanager
def replacing_file(path: Path, mode: Literal["w", "wb"] = "w") -> Iterator[IO[Any]]:
    """A new file to write to (text is UTF-8) that becomes `path` at the end, in one step."""
    part = part_of(path)
    try:
        if path.exists() and not path.is_file():
            raise TreetopError(f"{path}: cannot be written (not a regular file)")
        part.unlink(missing_ok=True)  # left by a kill
        with part.open(mode.replace("w", "x"), encoding=None if "b" in mode else "utf-8") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except OSError as error:
        raise unwritable(path, error) from None
    finally:
        with suppress(OSError):
            part.unlink()


@contextmanager
def replacing_folder(target: Path, check: Callable[[Path], None]) -> Iterator[Path]:
    """A new folder to write to that becomes `target` at the end, in one step.

    `check` raises unless `target` may be replaced. It is asked before anything is written and, because
    that takes a while and what is replaced is deleted, once more after.
    """
    check(target)
    fresh = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh.mkdir()
        yield fresh
        for file in fresh.rglob("*"):
            if file.is_file():
                flush(file)
        check(target)
        swap(fresh, target)
    except OSError as error:
        raise unwritable(target, error) from None
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def unwritable(path: Path, error: OSError) -> TreetopError:
    """The error for a file or folder that cannot be written."""
    return TreetopError(f"{path}: cannot be written ({error.strerror or error})")


def flush(path: Path) -> None:
    """Make sure a file is on disk."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def swap(fresh: Path, target: Path) -> None:
    """Put `fresh` in the place of `target`; what was there ends up at `fresh`."""
    if not target.exists():
        fresh.rename(target)
        return
    if not exchange(fresh, target):
        aside = fresh.with_name(fresh.name + ".old")
        target.rename(aside)
        fresh.rename(target)
        aside.rename(fresh)


def exchange(first: Path, second: Path) -> bool:
    """Exchange two folders in one step, where the system can (Linux); False where it cannot."""
    if not sys.platform.startswith("linux"):
        return False
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    here, swap_both = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    return renameat2 is not None and not renameat2(
        here, os.fsencode(first), here, os.fsencode(second), swap_both
    )
