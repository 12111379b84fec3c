"""Safetensors files: named arrays that are memory-mapped when read.

The safetensors library copies a tensor to read it. The format is only a length, a JSON header and the
raw values, so `read_arrays` maps the file instead: a model of any size opens immediately, and processes
share its memory.
"""

from __future__ import annotations

import json
import math
import mmap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar

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
# Bytes. Ours have a hundred per array.
LONGEST_HEADER = 4 << 20
# Bytes that are written at a time.
BLOCK = 32 << 20
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
        content = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        # Not `tofile`, whose errors do not say that the disk is full.
        for start in range(0, content.size, BLOCK):
            file.write(content[start : start + BLOCK].data)
            forget(values)


def forget(array: np.ndarray) -> None:
    """Give back the memory of an array that is mapped from a file; it is read again when it is used."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    owner = base.obj if isinstance(base, memoryview) else base
    if isinstance(owner, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):  # not on Windows
        owner.madvise(mmap.MADV_DONTNEED)


def read_arrays(path: Path) -> Arrays:
    """Return the arrays of a safetensors file, memory-mapped and read-only.

    The file may be from a stranger: it is an error unless the arrays lie side by side and fill it.
    """
    with naming(path):
        view, start, header = mapped(path)
        entries = [Entry.of(*item) for item in header.items()]
        check_places(entries, len(view) - start)
        return {entry.name: array_at(view, start, entry) for entry in entries}


def stored_bytes(path: Path) -> dict[str, int]:
    """Return how many bytes a safetensors file has of each type of values, by its name in the file."""
    with naming(path):
        view, start, header = mapped(path)
        sizes: dict[str, int] = {}
        for entry in header.values():
            first, end = entry["data_offsets"]
            sizes[entry["dtype"]] = sizes.get(entry["dtype"], 0) + end - first
        if sum(sizes.values()) != len(view) - start:
            raise ValueError("its arrays do not fill it")
        return sizes


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Turn errors in reading a safetensors file into one line with its path."""
    try:
        yield
    except OSError as error:
        raise TreetopError(f"{path}: cannot be read ({error.strerror or error})") from None
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        reason = " ".join(str(error).split())[:200]
        raise TreetopError(f"{path}: not a readable safetensors file ({reason})") from None


def mapped(path: Path) -> tuple[mmap.mmap, int, dict[str, Any]]:
    """Return a safetensors file mapped into memory, where its values begin, and its header."""
    with path.open("rb") as file:
        view = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    start = 8 + int.from_bytes(view[:8], "little")
    if start > min(len(view), LONGEST_HEADER):
        raise ValueError("the length of its header is wrong")
    header = json.loads(view[8:start], object_pairs_hook=distinct)
    header.pop("__metadata__", None)
    return view, start, header


def distinct(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON; raise if it has a name twice: readers would differ in their choice."""
    names = dict(pairs)
    if len(names) != len(pairs):
        raise ValueError("its header has a name twice")
    return names


class Entry(NamedTuple):
    """What the header of a safetensors file says about an array."""

    name: str
    dtype: np.dtype
    shape: tuple[int, ...]
    start: int  # in bytes, after the header
    end: int

    @classmethod
    def of(cls, name: str, entry: Mapping[str, Any]) -> Entry:
        """Check an entry of the header."""
        start, end = entry["data_offsets"]
        numbers = [*entry["shape"], start, end]
        if any(type(number) is not int or number < 0 for number in numbers):
            raise ValueError(f"the shape or the offsets of {name!r} are not whole numbers")
        own = cls(name, np.dtype(DTYPES[entry["dtype"]]), tuple(entry["shape"]), start, end)
        if own.dtype.itemsize * math.prod(own.shape) != end - start:
            raise ValueError(f"the shape of {name!r} does not fit its offsets")
        return own


def array_at(view: mmap.mmap, start: int, entry: Entry) -> np.ndarray:
    """The array of an entry; its data begin at `start` plus its own offset."""
    if (start + entry.start) % entry.dtype.itemsize:
        raise ValueError(f"{entry.name!r} is not aligned")
    count = math.prod(entry.shape)
    flat = np.frombuffer(view, entry.dtype, count, start + entry.start) if count else np.empty(0)
    return flat.astype(entry.dtype, copy=False).reshape(entry.shape)


def check_places(entries: Sequence[Entry], size: int) -> None:
    """Raise unless the arrays lie side by side in `size` bytes."""
    end = 0
    for entry in sorted(entries, key=lambda entry: (entry.start, entry.end)):
        if entry.start != end:
            raise ValueError(f"{entry.name!r} does not begin where the array before it ends")
        end = entry.end
    if end != size:
        raise ValueError(f"its arrays have {end:,} bytes, but it holds {size:,}")


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
