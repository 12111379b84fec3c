"""Checks of the arrays of a file, which may come from a stranger, before any kernel reads them.

Each class that is made from arrays declares its own in a table of `Column`. All are checked in one
place, in linear time and in parallel. `Sizes` are numbers by name, such as that of the labels: arrays
that name the same size must agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from treetop.errors import TreetopError
from treetop.runtime import parallel
from treetop.runtime.arrays import Arrays

Sizes = dict[str, int]
# Values per task, few enough for a core's cache; and in all, from which on threads are worth starting.
STRETCH, MANY = 1 << 16, 1 << 21


@dataclass(frozen=True)
class Column:
    """What an array must be like. A size is a name, a name and a number (``"labels+1"``) or a number.

    Floats must be finite. `below` is an exclusive bound of the values, as `least` is an inclusive one.
    With `ends_at`, the values are pointers: they start at 0, never fall and end at that size.
    """

    dtype: str  # or several, separated by spaces
    shape: tuple[str, ...]
    least: int | None = None
    below: str | None = None
    ends_at: str | None = None
    distinct: bool = False  # with `below`: a permutation


class Stretch(NamedTuple):
    """A part of an array, as long as one task checks."""

    name: str
    values: np.ndarray
    column: Column
    below: int | None


def check_arrays(
    arrays: Mapping[str, np.ndarray], columns: Mapping[str, Column], sizes: Sizes, threads: int = 1
) -> Arrays:
    """Return the arrays that `columns` declares; raise unless they are as declared.

    `sizes` are those that are known; the others follow from the shapes, and are added.
    """
    for name, column in columns.items():
        if name not in arrays:
            raise TreetopError(f"{name} is missing")
        check_type_and_shape(name, arrays[name], column, sizes)
    stretches = [
        stretch
        for name, column in columns.items()
        for stretch in stretches_of(name, arrays[name], column, sizes)
    ]
    check_stretches(stretches, threads)
    return {name: arrays[name] for name in columns}


def check_type_and_shape(name: str, array: np.ndarray, column: Column, sizes: Sizes) -> None:
    """Raise unless an array has the type and the shape of its column; unknown sizes become known."""
    if array.dtype.name not in column.dtype.split():
        raise TreetopError(f"{name} is of type {array.dtype.name} instead of {column.dtype}")
    if array.ndim != len(column.shape):
        raise TreetopError(f"{name} has {array.ndim} dimensions instead of {len(column.shape)}")
    for size, length in zip(column.shape, array.shape, strict=True):
        base, more = terms_of(size)
        if base and sizes.setdefault(base, length - more) < 0:
            raise TreetopError(f"{name} is empty")
        if size_of(size, sizes) != length:
            raise TreetopError(f"{name} has {length:,} entries instead of {size_of(size, sizes):,}")


def terms_of(size: str) -> tuple[str, int]:
    """Split ``"labels+1"`` into a name and a number; a number alone has no name."""
    base, _, more = size.partition("+")
    return ("", int(base)) if base.isdigit() else (base, int(more or 0))


def size_of(size: str, sizes: Sizes) -> int:
    """The number that a size stands for."""
    base, more = terms_of(size)
    return more + (sizes[base] if base else 0)


def stretches_of(name: str, array: np.ndarray, column: Column, sizes: Sizes) -> Iterator[Stretch]:
    """Split an array into stretches. Those of pointers overlap by a value."""
    flat, overlap = array.reshape(-1), 0
    if column.ends_at is not None:
        end, overlap = size_of(column.ends_at, sizes), 1
        if not flat.size or flat[0] != 0 or flat[-1] != end:
            raise TreetopError(f"{name} does not lead from 0 to {end:,}")
    below = None if column.below is None else size_of(column.below, sizes)
    if column.distinct:
        check_distinct(name, flat, below or 0)
    elif column.ends_at is not None or array.dtype.kind == "f" or (column.least, below) != (None, None):
        for start in range(0, flat.size, STRETCH):
            yield Stretch(name, flat[start : start + STRETCH + overlap], column, below)


def check_distinct(name: str, values: np.ndarray, below: int) -> None:
    """Raise unless values are different from each other, at least 0 and below a bound."""
    seen = np.zeros(below, bool)
    if values.size and values.min() >= 0 and values.max() < below:
        seen[values] = True
    if np.count_nonzero(seen) != values.size:
        raise TreetopError(f"{name} holds a number twice, or one that is not below {below:,}")


def check_stretches(stretches: list[Stretch], threads: int) -> None:
    """Raise for the first stretch with a value that is not allowed."""
    count = sum(stretch.values.size for stretch in stretches)
    parts = parallel.ranges(len(stretches), 4 * threads if count > MANY else 1) if stretches else []

    def work(task: tuple[int, int], _: np.ndarray) -> str | None:
        return next(filter(None, map(fault, stretches[slice(*task)])), None)

    if len(parts) > 1:
        faults = parallel.run(work, parts, threads)
    else:
        faults = [work(part, np.zeros(1, np.uint8)) for part in parts]
    for message in filter(None, faults):
        raise TreetopError(message)


def fault(stretch: Stretch) -> str | None:
    """What is wrong with the values of a stretch; None if they are as they should be."""
    name, values, column, below = stretch
    if column.ends_at is not None:
        return f"{name} falls" if (values[1:] < values[:-1]).any() else None
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        return f"{name} holds NaN or infinity"
    if column.least is not None and values.min() < column.least:
        return f"{name} holds {values.min()}, which is below {column.least}"
    if below is not None and values.max() >= below:
        return f"{name} holds {values.max():,}, which is not below {below:,}"
    return None


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Put the file and what to do before and after the message of an error."""
    try:
        yield
    except TreetopError as error:
        raise TreetopError(
            f"{path}: damaged: {error}: copy the model folder again or train again"
        ) from None


def check_sparse(matrix: Any, name: str) -> None:
    """Raise if indices of a sparse matrix lead outside of it: scipy and kernels follow them blindly.

    `matrix` is from a user, who may have made it from arrays that do not fit together. Formats without
    such arrays are not checked.
    """
    if matrix.format == "coo":
        fit = all(
            within(at, size) for at, size in zip((matrix.row, matrix.col), matrix.shape, strict=True)
        ) and (len(matrix.row) == len(matrix.col) == len(matrix.data))
    elif matrix.format in ("csr", "csc", "bsr"):
        height, width = getattr(matrix, "blocksize", (1, 1))
        rows, columns = matrix.shape[0] // height, matrix.shape[1] // width
        rows, columns = (columns, rows) if matrix.format == "csc" else (rows, columns)
        ends = matrix.indptr
        fit = len(ends) == rows + 1 and ends[0] == 0 and bool((np.diff(ends) >= 0).all())
        fit = fit and ends[-1] <= min(len(matrix.indices), len(matrix.data))
        fit = fit and within(matrix.indices[: ends[-1]], columns)
    else:
        return
    if not fit:
        raise TreetopError(
            f"{name} is a damaged sparse matrix: its indices lead outside of its shape "
            f"{tuple(map(int, matrix.shape))}"
        )


def within(indices: np.ndarray, size: int) -> bool:
    """Whether all indices are of `size` rows or columns."""
    return not len(indices) or bool(indices.min() >= 0 and indices.max() < size)
