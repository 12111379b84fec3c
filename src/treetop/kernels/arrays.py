"""New arrays in kernels.

As in numpy, but as instructions of the kernel itself: numba would compile several functions for each
type and number of dimensions, which takes as long as compiling a small kernel.
"""

from treetop.kernels.helpers import Intrinsic

empty = Intrinsic("empty")  # empty(size or sizes, type)
full = Intrinsic("full")  # full(size or sizes, value, type)
