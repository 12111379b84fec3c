"""Label features Z: Positive Instance Feature Aggregation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from treetop.features.hybrid import Features, raw_csr
from treetop.kernels import sparse as kernel
from treetop.runtime import parallel

VALUES_A_TASK = 1 << 22


def pifa(
    X: Features,
    Y: sp.csr_matrix,
    threads: int,
    normalize_rows: bool = False,
    largest: int | None = None,
    weights: np.ndarray | None = None,
) -> Features:
    """Z_l = v_l / ‖v_l‖ with v_l = Σ_{i: y_il = 1} Φ(x_i), the paper's equation for PIFA.

    A relevance other than 1, and a document's weight, multiply its Φ(x_i).
    With `normalize_rows`, rows of Y are first scaled to length 1, as PECOS does: a document with many
    labels then says less about each. With `largest`, only so many of a label's largest sparse
    features are kept.
    """
    members = sp.csr_matrix(Y.T, dtype=np.float32)
    if normalize_rows:
        squares = np.bincount(members.indices, members.data**2, minlength=Y.shape[0])
        members.data = (members.data / np.sqrt(squares)[members.indices]).astype(np.float32)
    if weights is not None:
        members.data = members.data * weights[members.indices]
    dense = np.asarray(members @ X.dense, np.float32)
    squares = np.einsum("ij,ij->i", dense, dense).astype(np.float64)
    sparse, scales = unit_sums(members, X.sparse, squares, threads, largest)
    return Features(sparse, np.ascontiguousarray(dense * scales[:, None]))


def unit_sums(
    groups: sp.csr_matrix, rows: sp.csr_matrix, squares: np.ndarray, threads: int, largest: int | None
) -> tuple[sp.csr_matrix, np.ndarray]:
    """``groups @ rows``, rows scaled to length 1 together with another half, and the scales.

    `squares` are the squared lengths of the other half. Columns are not sorted within a row.
    """
    scales = np.ones(groups.shape[0], np.float32)
    indptr = groups.indptr.astype(np.int64)
    sizes = np.diff(rows.indptr)[groups.indices]
    work_until = np.concatenate([[0], np.cumsum(sizes)])[indptr]
    edges = np.searchsorted(work_until, np.arange(0, work_until[-1], VALUES_A_TASK)[1:])
    edges = np.unique(np.concatenate([[0], edges, [groups.shape[0]]]))

    def work(task: tuple[int, int], _: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        first, last = task
        bounds = np.minimum(np.diff(work_until[first : last + 1]), rows.shape[1])
        room = int(bounds.sum())
        indices, data = np.empty(room, np.int32), np.empty(room, np.float32)
        ends = np.empty(last - first, np.int64)
        written = kernel.unit_row_sums(
            indptr,
            groups.indices,
            groups.data,
            first,
            last,
            rows.indptr,
            rows.indices,
            rows.data,
            squares,
            np.zeros(rows.shape[1], np.float32),
            indices,
            data,
            ends,
            scales,
        )
        if largest is not None:
            return largest_values(np.append(0, ends), indices, data, 0, last - first, largest)
        return indices[:written], data[:written], np.diff(ends, prepend=0)

    tasks = list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
    parts = parallel.run(work, tasks, threads)
    return csr_of_parts(parts, (groups.shape[0], rows.shape[1])), scales


def keep_largest(Z: Features, largest: int | None, threads: int) -> Features:
    """Z with only the `largest` largest values of each sparse row."""
    matrix = Z.sparse
    if largest is None or matrix.nnz == 0 or np.diff(matrix.indptr).max() <= largest:
        return Z

    def work(task: tuple[int, int], _: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return largest_values(matrix.indptr, matrix.indices, matrix.data, *task, largest)

    parts = parallel.run(work, parallel.ranges(matrix.shape[0], 4 * threads), threads)
    return Features(csr_of_parts(parts, matrix.shape), Z.dense)


def largest_values(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, first: int, last: int, largest: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Indices, values and row sizes of what `keep_largest` keeps of rows `first` to `last`."""
    room = int(np.minimum(np.diff(indptr[first : last + 1]), largest).sum())
    kept, values = np.empty(room, np.int32), np.empty(room, np.float32)
    ends = np.empty(last - first, np.int64)
    kernel.largest_in_rows(indptr, indices, data, first, last, largest, kept, values, ends)
    return kept, values, np.diff(ends, prepend=0)


def csr_of_parts(parts: Sequence[tuple[np.ndarray, ...]], shape: tuple[int, int]) -> sp.csr_matrix:
    """Consecutive rows given as (indices, values, row sizes), as one matrix."""
    indices, data, counts = (np.concatenate(column) for column in zip(*parts))
    return raw_csr(data, indices, np.append(0, np.cumsum(counts)), shape)
