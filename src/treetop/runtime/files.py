"""Atomic writes: files and folders are written under a temporary name, then moved into place.

After an error, or if the process is killed, the old file or folder is still there, unchanged. The
temporaries of killed processes are deleted by the next process that writes the same file or folder.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import re
import secrets
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Literal, overload

from treetop.errors import TreetopError
from treetop.runtime.locks import NO_FOLLOW, is_same, lock_handle, lock_of, locked, try_lock

PART = re.compile(r"\.(.+?)(\.[0-9a-f]{8})?\.part", re.DOTALL)
# Seconds to wait for another process that is saving to the same folder.
SAVING_SECONDS = 10.0
ASIDE = ".old"
STDOUT = Path("-")
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def json_lines(entries: Iterable[Mapping[str, Any]]) -> str:
    """Return the entries as JSON Lines: one object per line."""
    return "".join(json.dumps(entry) + "\n" for entry in entries)


def whole_name(name: str) -> str | None:
    """Return the name of the file or folder that a temporary is for; None for other names."""
    found = PART.fullmatch(name)
    return found[1] if found else None


@overload
def replacing_file(path: Path, mode: Literal["w"] = ...) -> AbstractContextManager[IO[str]]: ...
@overload
def replacing_file(path: Path, mode: Literal["wb"]) -> AbstractContextManager[IO[bytes]]: ...
@contextmanager
def replacing_file(path: Path, mode: Literal["w", "wb"] = "w") -> Iterator[IO[Any]]:
    """Open a temporary file (UTF-8 if text) that atomically replaces `path` when the block ends.

    The target of a symbolic link is replaced, not the link. A device or a pipe is written to, and the
    path "-" stands for standard output.
    """
    if path == STDOUT:
        yield sys.stdout.buffer if "b" in mode else sys.stdout
        return
    # Half of a surrogate pair is written as \udXXX, which JSON understands.
    text: Any = {} if "b" in mode else {"encoding": "utf-8", "errors": "backslashreplace"}
    try:
        if is_stream(path):
            with open(os.open(path, os.O_WRONLY | os.O_APPEND), mode, **text) as file:
                yield file
            return
        target = Path(os.path.realpath(path)) if path.is_symlink() else path
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        with temporary_file(target) as (part, handle), open(handle, mode, **text) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            os.replace(part, target)
    except OSError as error:
        raise unwritable(path, error) from None


def check_absent(target: Path) -> None:
    """Raise if `target` exists, even as a dangling symbolic link."""
    if os.path.lexists(target):
        raise TreetopError(f"{target}: already exists: choose another path")


def itself(folder: Path) -> Path:
    """Return the folder."""
    return folder


@contextmanager
def replacing_folder(
    target: Path, check: Callable[[Path], None], chosen: Callable[[Path], Path] = itself
) -> Iterator[Path]:
    """Create a temporary folder that atomically replaces `target` when the block ends.

    `check(target)` raises an error unless `target` may be replaced. It is called before the block and,
    since `target` may have changed meanwhile, again before its old content is deleted. `chosen` tells
    which file or folder inside the temporary one replaces `target`, if it is not to be all of it.
    """
    check(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with locked(lock_of(target), target, SAVING_SECONDS), temporary_folder(target) as fresh:
            restore(target)
            yield fresh
            flush_folder(fresh)
            check(target)
            swap(chosen(fresh), target)
    except OSError as error:
        raise unwritable(target, error) from None


@contextmanager
def saving(folder: Path, wait: float = SAVING_SECONDS) -> Iterator[None]:
    """Keep other processes from replacing a folder; raise a `TreetopError` if one already is.

    Without effect where this user could not replace the folder either.
    """
    lock = lock_of(Path(os.path.realpath(folder)))
    with ExitStack() as stack:
        with suppress(OSError):
            stack.enter_context(locked(lock, folder, wait))
        yield


@contextmanager
def temporary_file(target: Path) -> Iterator[tuple[Path, int]]:
    """Create an empty file beside `target`, deleted at the end of the block; yield path and handle."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_FOLLOW
    part, handle = new_part(target, lambda part: os.open(part, flags, 0o666))
    try:
        yield part, handle
    finally:
        with suppress(OSError):
            part.unlink()


@contextmanager
def temporary_folder(target: Path) -> Iterator[Path]:
    """Create an empty folder beside `target` that is deleted at the end of the block."""

    def make(part: Path) -> int:
        part.mkdir()
        return os.open(part, os.O_RDONLY | NO_FOLLOW) if os.name == "posix" else -1

    fresh, handle = new_part(target, make)
    try:
        yield fresh
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
        if handle >= 0:
            os.close(handle)


def new_part(target: Path, make: Callable[[Path], int]) -> tuple[Path, int]:
    """Make a temporary beside `target` and lock it, so that no other process deletes it."""
    sweep(target)
    while True:
        part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
        try:
            handle = make(part)
        except FileNotFoundError:
            if target.parent.is_dir():
                continue  # swept before it was locked
            raise
        if handle < 0 or (try_lock(handle, wait=True) and is_same(handle, part)):
            return part, handle
        os.close(handle)


def sweep(target: Path) -> None:
    """Delete the temporaries that killed processes have left beside `target`."""
    with suppress(OSError):
        names = [name for name in os.listdir(target.parent) if whole_name(name) == target.name]
        for name in names:
            discard_abandoned(target.with_name(name))


def discard_abandoned(part: Path) -> None:
    """Delete a temporary unless a process still holds it."""
    try:
        handle = os.open(part, os.O_RDONLY | NO_FOLLOW | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return
    try:
        if lock_handle(handle) and is_same(handle, part):
            shutil.rmtree(part) if part.is_dir() else part.unlink()
    except OSError:
        pass  # no locks here, or it belongs to another user
    finally:
        os.close(handle)


def is_stream(path: Path) -> bool:
    """Whether a path is a device, a pipe or an open file of a process, which cannot be replaced."""
    if path.is_absolute() and path.parts[1:2] in (("dev",), ("proc",)):
        return path.exists() and not path.is_dir() and path.parts[1:3] != ("dev", "shm")
    return path.exists() and not path.is_file() and not path.is_dir()


def unwritable(path: Path, error: OSError) -> TreetopError:
    """Return the error to raise for a file or folder that cannot be written."""
    step = "choose another path"
    if isinstance(error, FileNotFoundError):
        step = f"create {nearest_missing(path)} or {step}"
    elif error.errno in FULL:
        step = f"free some space or {step}"
    return TreetopError(f"{path}: cannot be written ({error.strerror or error}): {step}")


def nearest_missing(path: Path) -> Path:
    """Return the first folder on the way to `path` that does not exist."""
    missing = [folder for folder in path.parents if not folder.exists()]
    return missing[-1] if missing else path.parent


def flush_folder(folder: Path) -> None:
    """Force the files of a folder to disk, readable by whom the umask lets read.

    Some libraries give their files a mode of their own. That of the folder follows from the umask.
    """
    mode = folder.stat().st_mode & 0o666
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                os.fsync(file.fileno())
            path.chmod(mode)


def swap(fresh: Path, target: Path) -> None:
    """Move `fresh` to `target`; what was there ends up at `fresh`."""
    if not target.exists():
        fresh.rename(target)
        return
    if not exchange(fresh, target):
        aside = target.with_name(f".{target.name}{ASIDE}")
        target.rename(aside)
        fresh.rename(target)
        aside.rename(fresh)


def restore(target: Path) -> None:
    """Undo the first step of a `swap` that was killed after it, on a system that cannot exchange."""
    aside = target.with_name(f".{target.name}{ASIDE}")
    if aside.is_dir() and not target.exists():
        aside.rename(target)


def exchange(first: Path, second: Path) -> bool:
    """Exchange two folders atomically; return False where the system cannot (it can on Linux)."""
    if not sys.platform.startswith("linux"):
        return False
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    here, swap_both = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    return renameat2 is not None and not renameat2(
        here, os.fsencode(first), here, os.fsencode(second), swap_both
    )
