"""Temporary files and folders, which are deleted even if their process is killed.

A process holds a lock on each of its temporaries. Those that nobody holds anymore are deleted by the
next process that makes a temporary for the same file or folder.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from treetop.runtime.locks import NO_FOLLOW, is_same, lock_handle, try_lock

PART = re.compile(r"\.(.+?)(\.[0-9a-f]{8})?\.part", re.DOTALL)


def whole_name(name: str) -> str | None:
    """Return the name of the file or folder that a temporary is for; None for other names."""
    found = PART.fullmatch(name)
    return found[1] if found else None


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


def has_temporary_folder() -> bool:
    """Whether this user can write any folder for temporary files; not so in some containers."""
    try:
        tempfile.gettempdir()
    except OSError:
        return False
    return True


@contextmanager
def scratch_folder(name: str) -> Iterator[Path]:
    """Create a folder for temporary files of this user, which a later call deletes after a kill."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    with temporary_folder(Path(tempfile.gettempdir(), f"treetop-{name}-{user}")) as folder:
        folder.chmod(0o700)
        yield folder


def private_folder(name: str) -> Path:
    """Return a folder for files of this user that may be lost, such as a cache, and create it.

    It is where nobody else can put anything; other users may write beside it.
    """
    user = os.getuid() if hasattr(os, "getuid") else 0
    folder = Path(tempfile.gettempdir(), f"treetop-{user}")
    folder.mkdir(mode=0o700, exist_ok=True)
    facts = folder.lstat()
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != user or facts.st_mode & 0o022:
        folder = Path(tempfile.mkdtemp(prefix="treetop-"))
    (folder / name).mkdir(exist_ok=True)
    return folder / name
