"""Label features Z: Positive Instance Feature Aggregation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from treetop.features.hybrid import Features, raw_csr
from treetop.kernels import sparse as kernel
from treetop.runtime import parallel
from treetop.runtime.cluster import run_anywhere

VALUES_PER_TASK = 1 << 22


def pifa(
    X: Features,
    Y: sp.csr_matrix,
    threads: int,
    *,
    normalize_rows: bool = False,
    largest: int | None = None,
    weights: np.ndarray | None = None,
) -> Features:
    """Compute Z_l = v_l / ‖v_l‖ with v_l = Σ_{i: y_il = 1} Φ(x_i), the paper's equation 4.

    `X` has the features of N documents, `Y` has shape (N, L). A relevance other than 1, and the
    document's weight (`weights`, float32), multiply Φ(x_i). With `normalize_rows`, the rows of Y are
    first scaled to unit length, as PECOS does, so that a document with many labels contributes less to
    each. `largest` limits the number of sparse features per label to the largest.
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
    """Compute ``groups @ rows``, scaled to unit length together with a dense half, and the scales.

    `squares` are the squared lengths of the dense half. Column indices are not sorted within a row.
    """
    groups = raw_csr(groups.data, groups.indices, groups.indptr, groups.shape)
    sizes = np.diff(rows.indptr)[groups.indices]
    work_until = np.concatenate([[0], np.cumsum(sizes)])[groups.indptr]
    edges = np.searchsorted(work_until, np.arange(0, work_until[-1], VALUES_PER_TASK)[1:])
    edges = np.unique(np.concatenate([[0], edges, [groups.shape[0]]]))
    room = np.minimum(np.diff(work_until), rows.shape[1])

    def work(task: tuple[int, int], _: np.ndarray) -> tuple[sp.csr_matrix, np.ndarray]:
        first, last = task
        scales = np.ones(groups.shape[0], np.float32)
        size = int(room[first:last].sum())
        indices, data = np.empty(size, np.int32), np.empty(size, np.float32)
        indptr = np.zeros(last - first + 1, np.int64)
        written = kernel.unit_row_sums(
            groups.indptr,
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
            indptr[1:],
            scales,
        )
        sums = raw_csr(data[:written], indices[:written], indptr, (last - first, rows.shape[1]))
        kept = sums if largest is None else largest_values(sums, 0, last - first, largest)
        return kept, scales[first:last].copy()

    tasks = list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
    blocks, scales = zip(*run_anywhere(work, tasks, threads))
    return stacked(list(blocks)), np.concatenate(scales)


def keep_largest(Z: Features, largest: int | None, threads: int) -> Features:
    """Keep only the `largest` largest values of each sparse row of Z; None keeps all."""
    matrix = Z.sparse
    if largest is None or matrix.nnz == 0 or np.diff(matrix.indptr).max() <= largest:
        return Z

    def work(task: tuple[int, int], _: np.ndarray) -> sp.csr_matrix:
        return largest_values(matrix, *task, largest)

    parts = parallel.run(work, parallel.ranges(matrix.shape[0], 4 * threads), threads)
    return Features(stacked(parts), Z.dense)


def largest_values(matrix: sp.csr_matrix, first: int, last: int, largest: int) -> sp.csr_matrix:
    """Return the rows from `first` to `last` with only their `largest` largest values."""
    room = int(np.minimum(np.diff(matrix.indptr[first : last + 1]), largest).sum())
    indices, data = np.empty(room, np.int32), np.empty(room, np.float32)
    indptr = np.zeros(last - first + 1, np.int64)
    kernel.largest_in_rows(
        matrix.indptr, matrix.indices, matrix.data, first, last, largest, indices, data, indptr[1:]
    )
    return raw_csr(data, indices, indptr, (last - first, matrix.shape[1]))


def stacked(parts: Sequence[sp.csr_matrix]) -> sp.csr_matrix:
    """Stack blocks of consecutive rows."""
    sizes = np.concatenate([np.diff(part.indptr) for part in parts])
    data = np.concatenate([part.data for part in parts])
    indices = np.concatenate([part.indices for part in parts])
    return raw_csr(data, indices, np.append(0, np.cumsum(sizes)), (sizes.size, parts[0].shape[1]))
