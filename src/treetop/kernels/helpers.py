"""What kernels call. None of it can be called from Python: that would take long to compile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Helper:
    """A function that kernels call, and nothing else: it cannot be called from Python."""

    function: Callable[..., Any]
    makes_arrays: bool

    def __call__(self, *arguments: object) -> Any:
        """Only for those who read a kernel: numba compiles the function in its place."""
        raise TypeError(f"{self.function.__name__}: can only be called by kernels")


@dataclass(frozen=True)
class Intrinsic:
    """A function that becomes a few instructions where a kernel calls it, defined in `intrinsics`."""

    name: str

    def __call__(self, *arguments: object) -> Any:
        """Only for those who read a kernel: numba compiles the definition in its place."""
        raise TypeError(f"{self.name}: can only be called by kernels")


def helper(function: Callable[..., Any]) -> Helper:
    """Decorator: a function that kernels call.

    It has none of numba's reference counts, which cost an atomic instruction for every array at every
    call, and may therefore not make arrays. One that does is a `maker`.
    """
    return Helper(function, makes_arrays=False)


def maker(function: Callable[..., Any]) -> Helper:
    """Decorator: a function that kernels call, and that makes arrays."""
    return Helper(function, makes_arrays=True)
