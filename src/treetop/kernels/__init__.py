"""Numba functions over arrays: no classes, no input or output, no Python objects.

A kernel is compiled for one explicit signature, on its first call, and kept in numba's cache on
disk. It runs without the interpreter lock, so threads are ordinary Python threads.
"""

from __future__ import annotations

import importlib
import pkgutil
import threading
from collections.abc import Callable, Iterator
from typing import Any

from numba import njit, types

from treetop.runtime.kernel_cache import KernelCache

f4 = types.float32
f8 = types.float64
i4 = types.int32
i8 = types.int64
u1 = types.uint8
u8 = types.uint64
boolean = types.boolean
void = types.void

_registry: list[Kernel] = []
_compiling = threading.Lock()

# A function that kernels call. Without numba's reference counts, which cost an atomic instruction
# for every array at every call; such a function may therefore not make arrays. One that does is a
# `maker`.
helper = njit(nogil=True, error_model="numpy", forceinline=True, _nrt=False)
maker = njit(nogil=True, error_model="numpy")


def array(dtype: Any, dimensions: int = 1) -> Any:
    """Numba type of a contiguous array that the kernel writes to."""
    return types.Array(dtype, dimensions, "C")


def const(dtype: Any, dimensions: int = 1) -> Any:
    """Numba type of a contiguous array that is only read, so that memory-mapped ones fit too."""
    return types.Array(dtype, dimensions, "C", readonly=True)


csr = (const(i8), const(i4), const(f4))  # sparse rows: pointers, columns, values
hybrid = (*csr, const(f4, 2))  # rows of both halves, as `Features.arrays` has them
table = (const(u8), const(i4))  # hash table: keys, values


class Kernel:
    """A function that compiles itself for its one signature when first called."""

    def __init__(self, function: Callable[..., Any], signature: Any) -> None:
        self.function = function
        self.signature = signature
        self.dispatcher = njit(nogil=True, error_model="numpy")(function)
        self.dispatcher._cache = KernelCache(function)
        self.ready = False

    def compile(self) -> None:
        """Compile, or load from the cache."""
        with _compiling:
            if not self.ready:
                self.dispatcher.compile(self.signature)
                self.dispatcher.disable_compile()
                self.ready = True

    def __call__(self, *arguments: Any) -> Any:
        """Run, after compilation if this is the first call."""
        if not self.ready:
            self.compile()
        return self.dispatcher(*arguments)


def kernel(signature: Any) -> Callable[[Callable[..., Any]], Kernel]:
    """Decorator: compile the function for `signature` on its first call."""

    def wrap(function: Callable[..., Any]) -> Kernel:
        made = Kernel(function, signature)
        _registry.append(made)
        return made

    return wrap


def all_kernels() -> Iterator[Kernel]:
    """Every kernel of the package."""
    for module in pkgutil.iter_modules(__path__, f"{__name__}."):
        importlib.import_module(module.name)
    yield from _registry
