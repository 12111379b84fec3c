"""Sparse matrices saved by scipy in .npz files.

A file may come from a stranger: the size of every array is compared with the file before it is read,
and every pointer and index is checked before scipy or a kernel follows it.
"""

from __future__ import annotations

import math
import zipfile
from pathlib import Path
from typing import IO

import numpy as np
import scipy.sparse as sp

from treetop.data.sizes import ANY_FEATURES, LARGEST, PER_VALUE
from treetop.errors import TreetopError

# Matrices hardly shrink to a two hundredth; a file that grows by more than this is made to fill memory.
ANY_BYTES, GROWTH = 1 << 26, 200
HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
COMPRESSED = {"csr": sp.csr_matrix, "csc": sp.csc_matrix}
ByName = dict[str, np.ndarray]


def load_matrix(path: Path) -> sp.csr_matrix:
    """Read a matrix saved by `scipy.sparse.save_npz`; pickled content is refused."""
    if not path.is_file():
        raise TreetopError(f"{path}: missing")
    try:
        matrix = checked_matrix(arrays_of_archive(path))
    except MemoryError:
        raise
    except Exception as error:  # zipfile and numpy raise whatever they meet in a damaged file
        reason = f"{error or type(error).__name__}"
        raise TreetopError(
            f"{path}: not a sparse matrix saved by scipy ({reason}): save it again with "
            "scipy.sparse.save_npz"
        ) from None
    return matrix


def arrays_of_archive(path: Path) -> ByName:
    """Read the arrays of an .npz file that are no longer than the file explains."""
    with zipfile.ZipFile(path) as archive:
        members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        total = sum(info.file_size for info in members.values())
        if total > max(ANY_BYTES, GROWTH * path.stat().st_size):
            raise ValueError(f"it would grow to {total:,} bytes")
        arrays = {}
        for name, info in members.items():
            with archive.open(info) as file:
                arrays[name] = read_array(file, name, info.file_size)
    return arrays


def read_array(file: IO[bytes], name: str, most: int) -> np.ndarray:
    """Read an array of at most `most` bytes."""
    version = np.lib.format.read_magic(file)
    if version not in HEADERS:
        raise ValueError(f"{name} is of an unknown version")
    shape, _, dtype = HEADERS[version](file)
    if dtype.hasobject:
        raise ValueError(f"{name} holds Python objects")
    size = math.prod(shape) * dtype.itemsize
    # Reading beyond the end makes zipfile compare the checksum.
    content = file.read(size + 1) if 0 <= size <= most else b""
    if len(content) != size:
        raise ValueError(f"{name} is shorter or longer than it says")
    return np.frombuffer(content, dtype).reshape(shape)


def checked_matrix(arrays: ByName) -> sp.csr_matrix:
    """The matrix in arrays as scipy saves them; every pointer and every index is checked."""
    form = array_of(arrays, "format").item()
    form = form.decode() if isinstance(form, bytes) else str(form)
    if form not in (*COMPRESSED, "coo"):
        raise ValueError(f"it is in the format {form!r}, not csr, csc or coo")
    shape = shape_of(arrays)
    values = array_of(arrays, "data", "biuf", 1)
    check_shape(shape, values.size)
    if form == "coo":
        places = [array_of(arrays, name, "iu", 1) for name in ("row", "col")]
        for place, below, name in zip(places, shape, ("row", "col"), strict=True):
            check_indices(name, place, below)
        if not places[0].size == places[1].size == values.size:
            raise ValueError("row, col and data are of different lengths")
        matrix = sp.coo_matrix((values, tuple(places)), shape=shape)
        return finite(sp.csr_matrix(matrix))
    major, minor = shape if form == "csr" else shape[::-1]
    pointers, indices = array_of(arrays, "indptr", "iu", 1), array_of(arrays, "indices", "iu", 1)
    if pointers.size != major + 1 or pointers[0] != 0 or (pointers[1:] < pointers[:-1]).any():
        raise ValueError(f"indptr does not lead from 0 through {major:,} rising numbers")
    end = int(pointers[-1])
    if end > min(indices.size, values.size):
        raise ValueError("indptr leads beyond the stored values")
    check_indices("indices", indices[:end], minor)
    cells = (values[:end], indices[:end].astype(np.int32), pointers.astype(np.int64))
    return finite(sp.csr_matrix(COMPRESSED[form](cells, shape=shape)))


def array_of(
    arrays: ByName, name: str, kinds: str | None = None, dimensions: int | None = None
) -> np.ndarray:
    """The array of this name if it has one of these kinds of types and this number of dimensions."""
    if name not in arrays:
        raise ValueError(f"{name} is missing")
    array = arrays[name]
    if kinds is not None and array.dtype.kind not in kinds:
        raise ValueError(f"{name} is of type {array.dtype}")
    if dimensions is not None and array.ndim != dimensions:
        raise ValueError(f"{name} has {array.ndim} dimensions")
    return array


def shape_of(arrays: ByName) -> tuple[int, int]:
    """The declared numbers of rows and columns."""
    shape = array_of(arrays, "shape", "iu", 1).tolist()
    if len(shape) != 2:
        raise ValueError("shape is not two numbers")
    return int(shape[0]), int(shape[1])


def check_shape(shape: tuple[int, int], stored: int) -> None:
    """Raise unless the stored values explain the declared shape."""
    most = max(ANY_FEATURES, PER_VALUE * stored)
    if min(shape) < 0 or max(shape) > min(LARGEST, most):
        raise ValueError(f"it declares {shape[0]:,} x {shape[1]:,} for {stored:,} values")


def check_indices(name: str, indices: np.ndarray, below: int) -> None:
    """Raise unless all indices are at least 0 and below a bound."""
    if indices.size and not (int(indices.min()) >= 0 and int(indices.max()) < below):
        raise ValueError(f"{name} holds a number that is not from 0 to {below - 1:,}")


def finite(matrix: sp.csr_matrix) -> sp.csr_matrix:
    """The matrix; an error if it holds NaN, or numbers that are too large for float32."""
    with np.errstate(over="ignore"):
        if not np.isfinite(matrix.data.astype(np.float32, copy=False)).all():
            raise ValueError("data holds NaN, infinity or numbers too large for float32")
    return matrix
