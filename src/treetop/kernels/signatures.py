"""What kernels take and return, without numba, which is imported only to compile."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Scalar:
    """A number, by numba's name of its type."""

    name: str

    def __call__(self, *arguments: Argument) -> Signature:
        """The signature of a kernel that returns this."""
        return Signature(self, arguments)

    def accepts(self, value: object) -> bool:
        """Whether a kernel may be called with `value` for this argument."""
        integral = (int, np.integer, np.bool_)
        return isinstance(value, (*integral, float, np.floating) if self.name[0] == "f" else integral)


@dataclass(frozen=True)
class Array:
    """A contiguous array of numbers that is read, and also written unless `readonly`."""

    dtype: Scalar
    dimensions: int
    readonly: bool

    def accepts(self, value: object) -> bool:
        """Whether a kernel may be called with `value` for this argument."""
        return (
            isinstance(value, np.ndarray)
            and value.dtype == self.dtype.name
            and value.ndim == self.dimensions
            and value.flags.c_contiguous
            and value.flags.aligned
            and (self.readonly or value.flags.writeable)
        )


@dataclass(frozen=True)
class Tuple:
    """Several results. They are numbers: to return an array, numba would have to be imported."""

    items: tuple[Scalar, ...]

    def __call__(self, *arguments: Argument) -> Signature:
        """The signature of a kernel that returns this."""
        return Signature(self, arguments)


Argument = Scalar | Array


@dataclass(frozen=True)
class Signature:
    """The result and the arguments of a kernel."""

    result: Scalar | Tuple
    arguments: tuple[Argument, ...]

    def check(self, name: str, values: tuple[object, ...]) -> None:
        """Raise a `TypeError` if a kernel cannot be called with these values."""
        if len(values) != len(self.arguments):
            raise TypeError(f"{name}: {len(values)} arguments instead of {len(self.arguments)}")
        for number, (argument, value) in enumerate(zip(self.arguments, values, strict=True), 1):
            if not argument.accepts(value):
                is_array = isinstance(value, np.ndarray)
                found = (value.dtype, value.shape, value.strides) if is_array else repr(value)
                raise TypeError(f"{name}: argument {number} is {found}, not {argument}")


f4 = Scalar("float32")
f8 = Scalar("float64")
i4 = Scalar("int32")
i8 = Scalar("int64")
u1 = Scalar("uint8")
u2 = Scalar("uint16")
u4 = Scalar("uint32")
u8 = Scalar("uint64")
boolean = Scalar("boolean")
void = Scalar("void")


def array(dtype: Scalar, dimensions: int = 1) -> Array:
    """A contiguous array that the kernel writes to."""
    return Array(dtype, dimensions, readonly=False)


def const(dtype: Scalar, dimensions: int = 1) -> Array:
    """A contiguous array that is only read, so that memory-mapped ones fit too."""
    return Array(dtype, dimensions, readonly=True)


csr = (const(i8), const(i4), const(f4))  # sparse rows: pointers, columns, values
hybrid = (*csr, const(f4, 2))  # rows of both halves, as `Features.arrays` has them
table = (const(u8), const(i4))  # hash table: keys, values
