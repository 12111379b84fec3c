"""Safetensors files: named arrays that are memory-mapped when read.

The safetensors library copies a tensor to read it. The format is only a length, a JSON header and the
raw values, so `read_arrays` maps the file instead: a model of any size opens immediately, and processes
share its memory.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
import scipy.sparse as sp

from treetop.errors import TreetopError

Arrays = dict[str, np.ndarray]
Value = TypeVar("Value")
DTYPES = {
    "F64": np.float64,
    "F32": np.float32,
    "I64": np.int64,
    "I32": np.int32,
    "U64": np.uint64,
    "U8": np.uint8,
    "U16": np.uint16,
    "I8": np.int8,
    "F16": np.float16,
}
NAMES = {np.dtype(dtype): name for name, dtype in DTYPES.items()}


def write_arrays(
    path: Path, arrays: Mapping[str, np.ndarray], metadata: dict[str, str] | None = None
) -> None:
    """Write a safetensors file without copying the arrays in memory."""
    with path.open("wb") as file:
        write_tensors(file, arrays, metadata)


def write_tensors(
    file: IO[bytes], arrays: Mapping[str, np.ndarray], metadata: dict[str, str] | None = None
) -> None:
    """Write arrays to an open file in the safetensors format."""
    # Widest types first, so that every array is aligned to its item size.
    ordered = sorted(arrays.items(), key=lambda item: (-item[1].dtype.itemsize, item[0]))
    header: dict[str, Any] = {} if metadata is None else {"__metadata__": metadata}
    offset = 0
    for name, values in ordered:
        end = offset + values.nbytes
        header[name] = {
            "dtype": NAMES[values.dtype],
            "shape": list(values.shape),
            "data_offsets": [offset, end],
        }
        offset = end
    text = json.dumps(header).encode()
    text += b" " * (-(len(text) + 8) % 64)
    file.write(len(text).to_bytes(8, "little"))
    file.write(text)
    for _, values in ordered:
        np.ascontiguousarray(values).tofile(file)


def read_arrays(path: Path) -> Arrays:
    """Return the arrays of a safetensors file, memory-mapped and read-only."""
    with path.open("rb") as file:
        view = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    try:
        start = 8 + int.from_bytes(view[:8], "little")
        header = json.loads(view[8:start])
        arrays = {}
        for name, entry in header.items():
            if name == "__metadata__":
                continue
            dtype, shape = np.dtype(DTYPES[entry["dtype"]]), tuple(entry["shape"])
            count = int(np.prod(shape, dtype=np.int64))
            first = start + entry["data_offsets"][0]
            values = np.frombuffer(view, dtype, count, first) if count else np.empty(0, dtype)
            arrays[name] = values.reshape(shape)
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise TreetopError(f"{path}: not a readable safetensors file ({error})") from None
    return arrays


def prefixed(name: str, arrays: Mapping[str, Value]) -> dict[str, Value]:
    """Return the arrays or tensors with `name` and a dot prepended to their names."""
    return {f"{name}.{key}": values for key, values in arrays.items()}


def part(arrays: Mapping[str, Value], name: str) -> dict[str, Value]:
    """Invert `prefixed`: return the arrays whose names start with `name` and a dot, without it."""
    start = f"{name}."
    return {key.removeprefix(start): v for key, v in arrays.items() if key.startswith(start)}


def csr_to_arrays(matrix: sp.csr_matrix, name: str) -> Arrays:
    """Return a sparse matrix as four arrays that `csr_from_arrays` puts together again."""
    return {
        f"{name}.data": matrix.data,
        f"{name}.indices": matrix.indices,
        f"{name}.indptr": matrix.indptr,
        f"{name}.shape": np.array(matrix.shape, np.int64),
    }


def csr_from_arrays(arrays: Arrays, name: str) -> sp.csr_matrix:
    """Return the matrix whose arrays `csr_to_arrays` returned, without copying or checking them."""
    matrix = sp.csr_matrix(tuple(arrays[f"{name}.shape"].tolist()), dtype=np.float32)
    matrix.data, matrix.indices, matrix.indptr = (
        arrays[f"{name}.{part}"] for part in ("data", "indices", "indptr")
    )
    return matrix
