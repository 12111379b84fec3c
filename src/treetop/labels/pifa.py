"""Label features Z: Positive Instance Feature Aggregation."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from treetop.features.hybrid import Features, raw_csr
from treetop.kernels import sparse as kernel
from treetop.runtime import parallel
from treetop.runtime.anywhere import run_anywhere

VALUES_PER_TASK = 1 << 22
# How many values are moved before the memory they were in is given back.
VALUES_PER_GIVING_BACK = 1 << 23


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
    return aggregated(X, documents_of(Y, normalize_rows, weights), threads, largest)


def documents_of(
    Y: sp.csr_matrix, normalize_rows: bool = False, weights: np.ndarray | None = None
) -> sp.csr_matrix:
    """The documents of each label with their factors in its sum, (L, N); arguments as in `pifa`."""
    members = sp.csr_matrix(Y.T, dtype=np.float32)
    if normalize_rows:
        squares = np.bincount(members.indices, members.data**2, minlength=Y.shape[0])
        members.data = (members.data / np.sqrt(squares)[members.indices]).astype(np.float32)
    if weights is not None:
        members.data = members.data * weights[members.indices]
    return members


def aggregated(
    X: Features, members: sp.csr_matrix, threads: int, largest: int | None = None
) -> Features:
    """Compute Z of labels with these documents: see `documents_of` and `pifa`."""
    dense = np.asarray(members @ X.dense, np.float32)
    squares = np.einsum("ij,ij->i", dense, dense).astype(np.float64)
    sparse, scales = unit_sums(members, X.sparse, squares, threads, largest)
    return Features(sparse, np.ascontiguousarray(dense * scales[:, None]))


def most_values(X: Features, members: sp.csr_matrix, largest: int | None) -> int:
    """An upper limit of the number of values in the sparse half of Z."""
    sizes = np.diff(X.sparse.indptr)[members.indices]
    sums = np.diff(np.append(0, np.cumsum(sizes))[members.indptr])
    return int(np.minimum(sums, X.widths[0] if largest is None else largest).sum())


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
        scales = np.ones(last - first, np.float32)
        size = int(room[first:last].sum())
        indices, data = np.empty(size, np.int32), np.empty(size, np.float32)
        indptr = np.zeros(last - first + 1, np.int64)
        written = kernel.unit_row_sums(
            groups.indptr[first : last + 1],
            groups.indices,
            groups.data,
            0,
            last - first,
            rows.indptr,
            rows.indices,
            rows.data,
            squares[first:last],
            np.zeros(rows.shape[1], np.float32),
            indices,
            data,
            indptr[1:],
            scales,
        )
        sums = raw_csr(data[:written], indices[:written], indptr, (last - first, rows.shape[1]))
        kept = sums if largest is None else largest_values(sums, 0, last - first, largest)
        return kept, scales

    tasks = list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
    summed = run_anywhere(work, tasks, threads, stage="PIFA")
    blocks, scales = [block for block, _ in summed], np.concatenate([scale for _, scale in summed])
    del summed  # `stacked` gives back what it has copied
    return stacked(blocks), scales


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


def stacked(parts: list[sp.csr_matrix]) -> sp.csr_matrix:
    """Stack blocks of consecutive rows. Empties the list, so that nothing large is in memory twice."""
    sizes, columns = np.concatenate([np.diff(part.indptr) for part in parts]), parts[0].shape[1]
    ends = np.append(0, np.cumsum(sizes))
    data, indices = np.empty(ends[-1], np.float32), np.empty(ends[-1], np.int32)
    parts.reverse()
    at = kept = 0
    while parts:
        part = parts.pop()
        end = at + part.nnz
        data[at:end], indices[at:end] = part.data, part.indices
        del part
        at = end
        if at - kept > VALUES_PER_GIVING_BACK:
            parallel.give_back()
            kept = at
    return raw_csr(data, indices, ends, (sizes.size, columns))
