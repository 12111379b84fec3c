"""Numba functions over arrays: no classes, no input or output, no Python objects.

A kernel is compiled for one explicit signature, on its first call, and kept on disk, from where
other processes load it without numba. It runs without the interpreter lock, so threads are ordinary
Python threads.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
import threading
from collections.abc import Callable
from typing import Any

from treetop.kernels import cache
from treetop.kernels.helpers import Helper, Intrinsic, helper, maker
from treetop.kernels.machine_code import loader
from treetop.kernels.signatures import (
    Signature,
    array,
    boolean,
    const,
    csr,
    f4,
    f8,
    hybrid,
    i4,
    i8,
    table,
    u1,
    u2,
    u4,
    u8,
    void,
)
from treetop.kernels.warming import warm_up

__all__ = [
    "PREDICTION",
    "TRAINING",
    "Helper",
    "Intrinsic",
    "Kernel",
    "all_kernels",
    "array",
    "boolean",
    "common_kernels",
    "const",
    "csr",
    "f4",
    "f8",
    "helper",
    "hybrid",
    "i4",
    "i8",
    "kernel",
    "maker",
    "table",
    "u1",
    "u2",
    "u4",
    "u8",
    "void",
]
PREDICTION, TRAINING = "prediction", "training"
COMPILER = ("compiling", "intrinsics")  # modules that import numba
_registry: list[Kernel] = []
_compiling = threading.RLock()


class Kernel:
    """A function that compiles itself for its one signature when first called.

    Kernels of the same `use` are compiled together, in several processes, when the first of them
    turns out not to be in the cache on disk.
    """

    # Arguments are checked at the first call in a process; in tests, at every call.
    checks_every_call = False

    def __init__(self, function: Callable[..., Any], signature: Signature, use: str | None) -> None:
        self.function, self.signature, self.use = function, signature, use
        self.name = f"{function.__module__}.{function.__qualname__}"
        self.run: Callable[..., Any] | None = None
        self.trusts_callers = False

    @property
    def ready(self) -> bool:
        """Whether it can run without being compiled or loaded."""
        return self.run is not None

    @property
    def on_disk(self) -> bool:
        """Whether compiling only means loading."""
        return cache.read(self.name) is not None

    @property
    def is_kept(self) -> bool:
        """Whether the cache on disk keeps what is compiled."""
        return cache.has_writable_folder()

    @property
    def size(self) -> int:
        """Bytes of bytecode with that of the helpers it calls, which tells how long it compiles."""
        return code_size(self.function)

    def load(self) -> bool:
        """Get ready from the cache; whether it was there."""
        if not self.ready and (code := cache.read(self.name)) and (loads := loader()):
            self.run = loads.load(code, self.function)
        return self.ready

    def compile(self) -> None:
        """Compile, or load from the cache."""
        with _compiling:
            if not self.load():
                from treetop.kernels.compiling import compiled

                code, self.run = compiled(self.function, self.signature)
                cache.write(self.name, code)

    def compile_with_its_like(self) -> None:
        """Compile all kernels of this use."""
        with _compiling:
            if not self.load() and self.use:
                warm_up([other for other in _registry if other.use == self.use])
            self.compile()

    def __call__(self, *arguments: Any) -> Any:
        """Run, after compilation if this is the first call."""
        if not self.trusts_callers:
            self.signature.check(self.name, arguments)
            self.compile_with_its_like()
            self.trusts_callers = not self.checks_every_call
        return self.run(*arguments)  # type: ignore[misc]


def code_size(function: Callable[..., Any]) -> int:
    """Bytes of bytecode of a function and of the helpers it calls, each as often as it is named."""
    called = [function.__globals__.get(name) for name in function.__code__.co_names]
    helpers = [code_size(value.function) for value in called if isinstance(value, Helper)]
    return len(function.__code__.co_code) + sum(helpers)


def kernel(signature: Signature, use: str | None = TRAINING) -> Callable[[Callable[..., Any]], Kernel]:
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
    for module in pkgutil.iter_modules(__path__):
        if module.name not in COMPILER:
            importlib.import_module(f"{__name__}.{module.name}")
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
