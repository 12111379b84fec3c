"""Vectors of 4, 8 or 16 float32 that live in registers: names for kernels to use.

They stand for the functions of the same names in `intrinsics`, which numba needs only to compile.
"""

from __future__ import annotations

from dataclasses import dataclass

WIDTHS = (4, 8, 16)


@dataclass(frozen=True)
class Intrinsic:
    """A function that becomes a few instructions where a kernel calls it."""

    name: str

    def __call__(self, *arguments: object) -> object:
        """Only for those who read a kernel: numba compiles the definition in its place."""
        raise TypeError(f"{self.name}: can only be called by kernels")


lanes_at = Intrinsic("lanes_at")
store = Intrinsic("store")
splat = Intrinsic("splat")
fma = Intrinsic("fma")
add = Intrinsic("add")
prefetch = Intrinsic("prefetch")


def width_for(count: int) -> int:
    """The narrowest vector that holds `count` siblings, at most 16."""
    for width in WIDTHS:
        if count <= width:
            return width
    return WIDTHS[-1]
