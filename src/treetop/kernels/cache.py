"""Compiled kernels on disk: numba's cache, made quicker to open and safe against stale helpers."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    IndexDataCacheFile,
    NullCache,
)
from numba.core.runtime import rtsys


@cache
def source_stamp() -> str:
    """Digest of the source of all kernels: a kernel is stale when a helper it calls has changed."""
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


class KernelCache(FunctionCache):  # type: ignore[misc]
    """numba's cache of one function, with two differences.

    numba compares the modification time of the function's own file; helpers in other files may have
    changed since. And numba imports all that it needs to compile before it looks into the cache,
    a third of the time that a process needs for its first prediction.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file = IndexDataCacheFile(
            self._impl.locator.get_cache_path(), self._impl.filename_base, source_stamp()
        )

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function, or None."""
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)

    def holds(self, sig: Any, target_context: Any) -> bool:
        """Whether the function is there, compiled for this processor."""
        key = self._index_key(sig, target_context.codegen())
        return key in self._cache_file._load_index()


class ReadableFolder:
    """Mixin for numba's cache locators: a folder that is not writable can still be read."""

    writable = True

    def ensure_cache_path(self) -> None:
        """Create the folder; note whether it is writable rather than rejecting it if it is not."""
        try:
            super().ensure_cache_path()  # type: ignore[misc]
        except OSError:
            self.writable = False


def folder_cache(locator: Any) -> Any:
    """Return a subclass of `KernelCache` that uses the folder of one kind of numba's locators."""
    own_locator = type(locator.__name__, (ReadableFolder, locator), {})
    search = type("Search", (CompileResultCacheImpl,), {"_locator_classes": [own_locator]})
    return type("FolderCache", (KernelCache,), {"_impl_class": search})


# In numba's order: NUMBA_CACHE_DIR, the package's __pycache__, the user's cache folder.
FOLDER_CACHES = tuple(map(folder_cache, CompileResultCacheImpl._locator_classes))


def readable(folder: str) -> bool:
    """Whether a folder exists and this user can read the files in it."""
    return os.path.isdir(folder) and os.access(folder, os.R_OK | os.X_OK)


class LayeredCache(NullCache):  # type: ignore[misc]
    """The first writable folder of numba's list, and the read-only folders before it.

    numba itself ignores folders that are not writable, such as the kernels in a container image whose
    file system is read-only. Without any writable folder, compiled functions are kept in memory only.
    """

    def __init__(self, function: Callable[..., Any], folder_caches: Iterable[Any]) -> None:
        self.folders: list[Any] = []
        self.is_writable = False
        for kind in folder_caches:
            try:
                folder = kind(function)
            except RuntimeError:  # "no locator available": not a folder for this function
                continue
            self.is_writable = folder._impl.locator.writable
            if self.is_writable or readable(folder.cache_path):
                self.folders.append(folder)
            if self.is_writable:
                break

    def holds(self, sig: Any, target_context: Any) -> bool:
        """Whether the function is in one of the folders, compiled for this processor."""
        return any(folder.holds(sig, target_context) for folder in self.folders)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled function from the first folder that holds it, otherwise None."""
        for folder in self.folders:
            if (compiled := folder.load_overload(sig, target_context)) is not None:
                return compiled
        return None

    def save_overload(self, sig: Any, compiled: Any) -> None:
        """Save a compiled function, if there is a writable folder."""
        if self.is_writable:
            self.folders[-1].save_overload(sig, compiled)


def cache_of(function: Callable[..., Any]) -> LayeredCache:
    """Return the cache of a kernel."""
    return LayeredCache(function, FOLDER_CACHES)
