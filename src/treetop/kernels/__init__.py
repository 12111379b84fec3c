"""Numba functions over arrays: no classes, no input or output, no Python objects.

A kernel is compiled for one explicit signature, on its first call, and kept in numba's cache on
disk. It runs without the interpreter lock, so threads are ordinary Python threads.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
import threading
from collections.abc import Callable
from functools import cached_property
from typing import Any

from numba import njit, types

from treetop.kernels.cache import cache_of
from treetop.kernels.warming import warm_up

f4 = types.float32
f8 = types.float64
i4 = types.int32
i8 = types.int64
u1 = types.uint8
u2 = types.uint16
u4 = types.uint32
u8 = types.uint64
boolean = types.boolean
void = types.void

PREDICTION, TRAINING = "prediction", "training"
_registry: list[Kernel] = []
_compiling = threading.RLock()

# A function that kernels call. Without numba's reference counts, which cost an atomic instruction
# for every array at every call; such a function may therefore not make arrays. One that does is a
# `maker`. Neither can be called from Python: that would need wrappers, which take long to compile.
helper = njit(
    nogil=True,
    error_model="numpy",
    forceinline=True,
    _nrt=False,
    no_cfunc_wrapper=True,
    no_cpython_wrapper=True,
)
maker = njit(nogil=True, error_model="numpy", no_cfunc_wrapper=True, no_cpython_wrapper=True)


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
    """A function that compiles itself for its one signature when first called.

    Kernels of the same `use` are compiled together, in several processes, when the first of them
    turns out not to be in the cache on disk.
    """

    def __init__(self, function: Callable[..., Any], signature: Any, use: str | None) -> None:
        self.function, self.signature, self.use = function, signature, use
        self.name = f"{function.__module__}.{function.__qualname__}"
        self.ready = False

    @cached_property
    def dispatcher(self) -> Any:
        """The function as numba sees it."""
        options = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
        dispatcher = njit(**options)(self.function)
        dispatcher._cache = cache_of(self.function)
        return dispatcher

    @property
    def on_disk(self) -> bool:
        """Whether compiling only means loading."""
        return self.dispatcher._cache.holds(self.signature, self.dispatcher.targetctx)

    @property
    def is_kept(self) -> bool:
        """Whether the cache on disk keeps what is compiled."""
        return self.dispatcher._cache.is_writable

    @property
    def size(self) -> int:
        """Bytes of bytecode with that of the helpers it calls, which tells how long it compiles."""
        return code_size(self.function)

    def compile(self) -> None:
        """Compile, or load from the cache."""
        with _compiling:
            if not self.ready:
                self.dispatcher.compile(self.signature)
                self.dispatcher.disable_compile()
                self.ready = True

    def compile_with_its_like(self) -> None:
        """Compile all kernels of this use."""
        with _compiling:
            if not self.ready and not self.on_disk and self.use:
                warm_up([other for other in _registry if other.use == self.use])
            self.compile()

    def __call__(self, *arguments: Any) -> Any:
        """Run, after compilation if this is the first call."""
        if not self.ready:
            self.compile_with_its_like()
        return self.dispatcher(*arguments)


def code_size(function: Callable[..., Any]) -> int:
    """Bytes of bytecode of a function and of the helpers it calls, each as often as it is named."""
    called = [function.__globals__.get(name) for name in function.__code__.co_names]
    helpers = [code_size(value.py_func) for value in called if hasattr(value, "py_func")]
    return len(function.__code__.co_code) + sum(helpers)


def kernel(signature: Any, use: str | None = TRAINING) -> Callable[[Callable[..., Any]], Kernel]:
    """Decorator: compile the function for `signature` on its first call.

    `use` says with which others: those that prediction needs, or those that training needs too;
    None: alone, because few users need it.
    """

    def wrap(function: Callable[..., Any]) -> Kernel:
        compiled = Kernel(function, signature, use)
        _registry.append(compiled)
        return compiled

    return wrap


def all_kernels() -> list[Kernel]:
    """Every kernel of the package."""
    for module in pkgutil.iter_modules(__path__, f"{__name__}."):
        importlib.import_module(module.name)
    return list(_registry)


def common_kernels() -> list[Kernel]:
    """The kernels of training and prediction, without those that few users need."""
    return [kernel for kernel in all_kernels() if kernel.use]


def compile_by_name() -> None:
    """Compile the kernels that are named on standard input, and answer with the name of each."""
    kernels = {kernel.name: kernel for kernel in all_kernels()}
    for line in sys.stdin:
        kernels[line.strip()].compile()
        sys.stdout.write(line)
        sys.stdout.flush()
