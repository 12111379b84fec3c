"""Atomic writes: files and folders are written under a temporary name, then moved into place.

After an error, or if the process is killed, the old file or folder is still there, unchanged.
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
    """Return the entries as JSON Lines: one object per line."""
    return "".join(json.dumps(entry) + "\n" for entry in entries)


def part_of(path: Path) -> Path:
    """Return the temporary name under which `replacing_file` writes a file."""
    return path.parent / f".{path.name}.part"


@overload
def replacing_file(path: Path, mode: Literal["w"] = ...) -> AbstractContextManager[IO[str]]: ...
@overload
def replacing_file(path: Path, mode: Literal["wb"]) -> AbstractContextManager[IO[bytes]]: ...
@contextmanager
def replacing_file(path: Path, mode: Literal["w", "wb"] = "w") -> Iterator[IO[Any]]:
    """Open a temporary file (UTF-8 if text) that atomically replaces `path` when the block ends."""
    part = part_of(path)
    try:
        if path.exists() and not path.is_file():
            raise TreetopError(f"{path}: cannot be written (not a regular file): choose another path")
        part.unlink(missing_ok=True)  # of a process that was killed
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
    """Create a temporary folder that atomically replaces `target` when the block ends.

    `check(target)` raises an error unless `target` may be replaced. It is called before the block and,
    since `target` may have changed meanwhile, again before its old content is deleted.
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
    """Return the error to raise for a file or folder that cannot be written."""
    step = "choose another path"
    if isinstance(error, FileNotFoundError):
        step = f"create {nearest_missing(path)} or {step}"
    return TreetopError(f"{path}: cannot be written ({error.strerror or error}): {step}")


def nearest_missing(path: Path) -> Path:
    """Return the first folder on the way to `path` that does not exist."""
    missing = [folder for folder in path.parents if not folder.exists()]
    return missing[-1] if missing else path.parent


def flush(path: Path) -> None:
    """Force the content of a file to disk."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def swap(fresh: Path, target: Path) -> None:
    """Move `fresh` to `target`; a folder that was there ends up at `fresh`."""
    if not target.exists():
        fresh.rename(target)
        return
    if not exchange(fresh, target):
        aside = fresh.with_name(fresh.name + ".old")
        target.rename(aside)
        fresh.rename(target)
        aside.rename(fresh)


def exchange(first: Path, second: Path) -> bool:
    """Exchange two folders atomically; return False where the system cannot (it can on Linux)."""
    if not sys.platform.startswith("linux"):
        return False
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    here, swap_both = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    return renameat2 is not None and not renameat2(
        here, os.fsencode(first), here, os.fsencode(second), swap_both
    )
