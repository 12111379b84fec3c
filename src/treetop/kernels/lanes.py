"""Vectors of 4, 8 or 16 float32 that live in registers: names for kernels to use.

They stand for the functions of the same names in `intrinsics`, which numba needs only to compile.
Kernels calculate with vectors of one width as with numbers: ``+ - * /``, ``max`` and ``min``.
"""

from treetop.kernels.helpers import Intrinsic

WIDTHS = (4, 8, 16)

lanes_at = Intrinsic("lanes_at")
float_of = Intrinsic("float_of")
lanes_of_words = Intrinsic("lanes_of_words")
store = Intrinsic("store")
splat = Intrinsic("splat")
fma = Intrinsic("fma")
largest_lane = Intrinsic("largest_lane")
prefetch = Intrinsic("prefetch")


def width_for(count: int) -> int:
    """The narrowest vector that holds `count` siblings, at most 16."""
    for width in WIDTHS:
        if count <= width:
            return width
    return WIDTHS[-1]
