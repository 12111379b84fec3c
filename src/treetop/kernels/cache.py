"""Compiled kernels on disk: numba's cache, made quicker to open and safe against stale helpers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from numba.core.caching import FunctionCache, IndexDataCacheFile, NullCache
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


class NoCache(NullCache):  # type: ignore[misc]
    """Where no folder can be written to, each process compiles for itself."""

    def holds(self, sig: Any, target_context: Any) -> bool:
        """Nothing is kept."""
        return False


def cache_of(function: Callable[..., Any]) -> KernelCache | NoCache:
    """The cache of a kernel, in the first folder of numba's list that can be written to."""
    try:
        return KernelCache(function)
    except RuntimeError:
        return NoCache()
