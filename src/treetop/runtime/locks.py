"""Locks: who is writing a folder, and which temporaries belong to a process that is still running.

A lock belongs to an open file and ends with its process, however that ends. Some systems and file
systems have no locks; there, everything works without them.
"""

from __future__ import annotations

import errno
import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from treetop.errors import TreetopError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
POLL_SECONDS = 0.02
# The lock files that this thread holds, so that a block may contain another one for the same folder.
_held: ContextVar[frozenset[Path]] = ContextVar("held", default=frozenset())


def lock_of(folder: Path) -> Path:
    """Return the lock file of a folder that is replaced as a whole; it is beside the folder."""
    return folder.with_name(f".{folder.name}.lock")


@contextmanager
def locked(lock: Path, subject: Path, wait: float = 0.0) -> Iterator[None]:
    """Hold the lock file `lock` during the block.

    If another process or thread holds it for longer than `wait` seconds, raise a `TreetopError` that
    says who is writing `subject`.
    """
    lock = Path(os.path.realpath(lock))
    if lock in _held.get():
        yield
        return
    handle = open_locked(lock, subject, wait)
    token = _held.set(_held.get() | {lock})
    try:
        yield
    finally:
        _held.reset(token)
        with suppress(OSError):
            lock.unlink()
        os.close(handle)


def open_locked(lock: Path, subject: Path, wait: float) -> int:
    """Open and lock a file, write into it who holds it, and return its handle."""
    deadline = time.monotonic() + wait
    while True:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | NO_FOLLOW, 0o666)
        try:
            if not try_lock(handle):
                if time.monotonic() >= deadline:
                    raise in_use(subject, os.pread(handle, 500, 0))
                time.sleep(POLL_SECONDS)
            elif is_same(handle, lock):  # otherwise its holder has just deleted it
                with suppress(OSError):
                    os.ftruncate(handle, 0)
                    os.pwrite(handle, this_process().encode(), 0)
                kept, handle = handle, -1
                return kept
        finally:
            if handle >= 0:
                os.close(handle)


def check_free(lock: Path, subject: Path) -> None:
    """Raise the error of `locked` if another process or thread holds the lock file now."""
    if Path(os.path.realpath(lock)) in _held.get():
        return
    try:
        handle = os.open(lock, os.O_RDWR | NO_FOLLOW)
    except OSError:
        return
    try:
        if not try_lock(handle) and is_same(handle, lock):
            raise in_use(subject, os.pread(handle, 500, 0))
    finally:
        os.close(handle)


def in_use(subject: Path, holder: bytes) -> TreetopError:
    """Return the error to raise for a folder that another process or thread is writing."""
    name = holder.decode("utf-8", "replace").strip() or "another process"
    return TreetopError(
        f"{subject}: is being written by {name}: wait until it ends, or choose another folder"
    )


def this_process() -> str:
    """Describe this process for those who wait for it."""
    since = time.strftime("%Y-%m-%d %H:%M:%S")
    return f"process {os.getpid()} on {platform.node() or 'this machine'} since {since}\n"


def try_lock(handle: int, wait: bool = False) -> bool:
    """Lock an open file and return whether that worked; always true where there are no locks."""
    with suppress_unsupported():
        return lock_handle(handle, wait)
    return True


def lock_handle(handle: int, wait: bool = False) -> bool:
    """Like `try_lock`, but raise an `OSError` where there are no locks."""
    if fcntl is None:
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


@contextmanager
def suppress_unsupported() -> Iterator[None]:
    """Ignore errors that mean that a file system has no locks."""
    try:
        yield
    except OSError as error:
        without = (errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.ENOSYS, errno.EINVAL)
        if error.errno not in (*without, errno.EBADF):
            raise


def is_same(handle: int, path: Path) -> bool:
    """Whether an open file or folder is the one that is at `path` now."""
    try:
        return os.path.samestat(os.fstat(handle), os.lstat(path))
    except FileNotFoundError:
        return False
