"""Numba's on-disk cache of compiled functions, made to work on read-only file systems.

Numba only looks for compiled functions in the first writable folder of its list, and raises an error
if there is none. On a read-only file system it could neither load functions that were compiled
earlier, for example when a container image was built, nor run at all. Here functions are loaded from
every folder of the list and saved in the first writable one; without any, they are kept in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from numba.core.caching import CompileResultCacheImpl, FunctionCache, NullCache


class ReadableFolder:
    """Mixin for numba's cache locators: the folder has to be writable only when something is saved."""

    located = False

    @classmethod
    def from_function(cls, function: Callable[..., Any], file: str) -> Any:
        """Return a locator for a function, or None if this kind of folder does not apply to it."""
        locator = super().from_function(function, file)  # type: ignore[misc]
        if locator is not None:
            locator.located = True
        return locator

    def ensure_cache_path(self) -> None:
        """Create the folder and raise an `OSError` unless it is writable; only called to save."""
        if self.located:
            super().ensure_cache_path()  # type: ignore[misc]


def folder_cache(locator: Any) -> Any:
    """Return a class like numba's `FunctionCache` that uses only the folder of one kind of locator."""
    readable = type(locator.__name__, (ReadableFolder, locator), {})
    search = type("Search", (CompileResultCacheImpl,), {"_locator_classes": [readable]})
    return type("FolderCache", (FunctionCache,), {"_impl_class": search})


# In numba's order: NUMBA_CACHE_DIR, the package's __pycache__, the user's cache folder.
FOLDER_CACHES = tuple(map(folder_cache, CompileResultCacheImpl._locator_classes))


class KernelCache(NullCache):  # type: ignore[misc]
    """The caches of one function in all folders that apply to it."""

    def __init__(self, function: Callable[..., Any], kinds: Iterable[Any] = FOLDER_CACHES) -> None:
        self.folders: list[Any] = []
        for kind in kinds:
            with suppress(RuntimeError):  # "no locator available": this kind does not apply
                self.folders.append(kind(function))

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Return the compiled function from the first folder that has it, otherwise None."""
        for folder in self.folders:
            with suppress(OSError):
                if (compiled := folder.load_overload(signature, target)) is not None:
                    return compiled
        return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Save a compiled function in the first folder that is writable, if there is one."""
        for folder in self.folders:
            with suppress(OSError):
                folder.save_overload(signature, compiled)
                return
