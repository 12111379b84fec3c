"""Atomic writes: files and folders are written under a temporary name, then moved into place.

After an error, or if the process is killed, the old file or folder is still there, unchanged. The
temporaries of killed processes are deleted by the next process that writes the same file or folder.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import secrets
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Literal, overload

from treetop.errors import TreetopError
from treetop.runtime.locks import POLL_SECONDS, lock_of, locked
from treetop.runtime.temporary import temporary_file, temporary_folder

# Seconds to wait for another process that is saving to the same folder.
SAVING_SECONDS = 10.0
ASIDE = ".old"
# Bytes without which there is no point in beginning to train.
LEAST_SPACE = 1 << 14
STDOUT = Path("-")
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def check_path(path: Path) -> None:
    """Raise unless a file can have this name."""
    try:
        os.lstat(path)
    except ValueError:  # a null character, or half of a surrogate pair
        raise TreetopError(f"{str(path)!a}: no file can have this name: check the path") from None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise TreetopError(
                f"{ascii(path.name)[1:60]}…: the name is too long: choose a shorter one"
            ) from None


def json_lines(entries: Iterable[Mapping[str, Any]]) -> str:
    """Return the entries as JSON Lines: one object per line."""
    return "".join(json.dumps(entry) + "\n" for entry in entries)


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
    check_path(path)
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
    check_path(target)
    check(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with locked(lock_of(target), target, SAVING_SECONDS):
            restore(target, check)
            with temporary_folder(target) as fresh:
                yield fresh
                flush_folder(fresh)
                check(target)
                swap(chosen(fresh), target)
    except OSError as error:
        raise unwritable(target, error) from None


@contextmanager
def reserving(target: Path) -> Iterator[None]:
    """Keep other processes from writing a folder during long work that ends by writing it.

    Raise a `TreetopError` before that work if one already does, or if the folder cannot be written.
    Folders that are created for `target` are removed if it is not written.
    """
    check_path(target)
    absent = [folder for folder in target.parents if not folder.exists()]
    try:
        with ExitStack() as stack:
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                stack.enter_context(locked(lock_of(target), target, POLL_SECONDS))
                check_space(target)
            except OSError as error:
                raise unwritable(target, error) from None
            yield
    finally:
        for folder in absent:
            with suppress(OSError):  # it is not empty
                folder.rmdir()


def check_space(target: Path) -> None:
    """Raise an `OSError` unless there is some space where `target` is to be written."""
    with temporary_file(target) as (_, handle):
        if os.write(handle, bytes(LEAST_SPACE)) < LEAST_SPACE:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


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


def restore(target: Path, check: Callable[[Path], None]) -> None:
    """Complete or undo a `swap` that was killed halfway, on a system that cannot exchange.

    What it has left is deleted, or put back into place, only if `check` lets it be replaced.
    """
    aside = target.with_name(f".{target.name}{ASIDE}")
    if aside.is_dir():
        part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
        with suppress(TreetopError):
            check(aside)
            aside.rename(part if target.exists() else target)


def exchange(first: Path, second: Path) -> bool:
    """Exchange two folders atomically; return False where the system cannot (it can on Linux)."""
    if not sys.platform.startswith("linux"):
        return False
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    here, swap_both = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    return renameat2 is not None and not renameat2(
        here, os.fsencode(first), here, os.fsencode(second), swap_both
    )
