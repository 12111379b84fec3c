"""Stacks sparse matrices with several threads, as the first access to new memory dominates the time."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from treetop.features.hybrid import raw_csr, scipy_csr
from treetop.kernels import sparse as kernel
from treetop.runtime import parallel
from treetop.runtime.spool import NewArray


def stack(rows: list[sp.csr_matrix], threads: int) -> sp.csr_matrix:
    """Blocks of rows as one matrix, without scipy's conversion to COO."""
    if len(rows) == 1:
        return rows[0]
    ends = np.cumsum(np.concatenate([[0], *(np.diff(block.indptr) for block in rows)]))
    data, indices = np.empty(ends[-1], np.float32), np.empty(ends[-1], np.int32)
    starts = np.cumsum([0, *(block.nnz for block in rows)])

    def work(number: int, _: np.ndarray) -> None:
        part = slice(starts[number], starts[number + 1])
        data[part], indices[part] = rows[number].data, rows[number].indices

    parallel.run(work, range(len(rows)), threads)
    return raw_csr(data, indices, ends, (ends.size - 1, rows[0].shape[1]))


def side_by_side(parts: list[sp.csr_matrix], threads: int) -> sp.csr_matrix:
    """The columns of all parts side by side; rows have length 1 if those of each part have."""
    if len(parts) == 1:
        return parts[0]
    sizes = np.array([np.diff(part.indptr) for part in parts])
    scales = (1 / np.sqrt(np.maximum((sizes > 0).sum(axis=0), 1))).astype(np.float32)
    ends = np.append(0, np.cumsum(sizes.sum(axis=0)))
    starts = ends[:-1] + np.cumsum(sizes, axis=0) - sizes
    data, indices = np.empty(ends[-1], np.float32), np.empty(ends[-1], np.int32)
    shifts = np.cumsum([0, *(part.shape[1] for part in parts)])

    def work(task: tuple[int, int], _: np.ndarray) -> None:
        for part, start, shift in zip(parts, starts, shifts, strict=False):
            matrix = part.indptr.astype(np.int64, copy=False), part.indices, part.data
            kernel.place_rows(*matrix, *task, start, int(shift), scales, indices, data)

    parallel.over_ranges(work, ends.size - 1, threads)
    return raw_csr(data, indices, ends, (ends.size - 1, int(shifts[-1])))


def joined_blocks(blocks: list[list[sp.csr_matrix]], limit: int, threads: int) -> sp.csr_matrix:
    """Blocks of rows, each in parts side by side, as one matrix. Empties the list.

    A matrix of more than `limit` bytes is mapped from a file, so no block is in memory twice.
    """
    if len(blocks) == 1:
        return scipy_csr(side_by_side(blocks.pop(), threads))
    sizes = [np.sum([np.diff(part.indptr) for part in parts], axis=0) for parts in blocks]
    ends = np.append(0, np.cumsum(np.concatenate(sizes)))
    starts = np.append(0, np.cumsum([own.sum() for own in sizes])).tolist()
    columns = sum(part.shape[1] for part in blocks[0])
    data = NewArray((int(ends[-1]),), np.float32, limit // 2)
    indices = NewArray((int(ends[-1]),), np.int32, limit // 2)

    def work(number: int, _: np.ndarray) -> None:
        block = side_by_side(blocks[number], 1)
        blocks[number] = []
        data.write(starts[number], block.data)
        indices.write(starts[number], block.indices)

    parallel.run(work, range(len(blocks)), threads)
    return raw_csr(data.finished(), indices.finished(), ends, (ends.size - 1, columns))
