"""Document features: sparse, dense, or both side by side (Φ_cat), stored as a pair of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeGuard

import numpy as np
import scipy.sparse as sp

from treetop.errors import TreetopError
from treetop.runtime.arrays import forget
from treetop.runtime.cluster import sent_once

# Rows whose values are squared at a time.
ROWS_AT_A_TIME = 1 << 16
# What kernels take: the values and the indices of a matrix.
TYPES = (np.dtype(np.float32), np.dtype(np.int32))


@sent_once
@dataclass(frozen=True)
class Features:
    """Rows of features in two halves, either of which may be empty (zero columns).

    `blank` marks documents in which there was nothing to read: they get no labels.
    """

    sparse: sp.csr_matrix  # float32, indices int32 ascending, indptr int64
    dense: np.ndarray  # float32, C-contiguous
    blank: np.ndarray | None = None  # bool, by row; None: no document is blank

    @property
    def rows(self) -> int:
        """Number of documents (or labels)."""
        return int(self.sparse.shape[0])

    @property
    def widths(self) -> tuple[int, int]:
        """Columns of the sparse and the dense half."""
        return int(self.sparse.shape[1]), int(self.dense.shape[1])

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The arrays that kernels take: indptr, indices, data, dense."""
        return self.sparse.indptr, self.sparse.indices, self.sparse.data, self.dense

    def __getitem__(self, rows: Any) -> Features:
        selected = features(self.sparse[rows], self.dense[rows])
        return selected if self.blank is None else replace(selected, blank=self.blank[rows])

    def blank_marked(self, texts: Sequence[str] = ()) -> Features:
        """Mark the documents without any feature, and those of the `texts`, if given, without any word.

        This is for features of texts. A row of zeros in a matrix that users pass is not blank.
        """
        blank = np.diff(self.sparse.indptr) == 0
        if self.dense.shape[1]:
            blank &= ~self.dense.any(axis=1)
        if texts:
            blank |= blank_texts(texts)
        return replace(self, blank=blank) if blank.any() else self

    def scaled(self, factor: float) -> Features:
        """The same with the values of the sparse half multiplied by `factor`."""
        if factor == 1:
            return self
        matrix = self.sparse
        data = np.float32(factor) * matrix.data
        return replace(self, sparse=raw_csr(data, matrix.indices, matrix.indptr, matrix.shape))

    def squared_norms(self) -> np.ndarray:
        """‖x‖² of each row, both halves together: float32."""
        squares = np.einsum("ij,ij->i", self.dense, self.dense)
        pointers, data = self.sparse.indptr, self.sparse.data
        for first in range(0, self.rows, ROWS_AT_A_TIME):
            ends = pointers[first : first + ROWS_AT_A_TIME + 1]
            nonempty = np.flatnonzero(np.diff(ends))
            if nonempty.size:
                own = data[ends[0] : ends[-1]] ** 2
                sums = np.add.reduceat(own, ends[nonempty] - ends[0])
                squares[first + nonempty] += sums.astype(np.float32)
                forget(data)
        return np.asarray(squares, np.float32)


def features(sparse: Any = None, dense: Any = None) -> Features:
    """Features from any scipy matrix, any array or both, checked and in canonical form.

    Indices are sorted and duplicates summed. NaN, infinity and different numbers of rows are errors.
    """
    if sparse is None and dense is None:
        raise TreetopError("no features: pass a sparse matrix, a dense array or both")
    if sparse is None:
        sparse = sp.csr_matrix((len(dense), 0), dtype=np.float32)
    if dense is None:
        dense = np.zeros((sparse.shape[0], 0), np.float32)
    sparse, dense = canonical(sparse), np.ascontiguousarray(dense, np.float32)
    if dense.ndim != 2 or dense.shape[0] != sparse.shape[0]:
        raise TreetopError(
            f"sparse features have {sparse.shape[0]} rows, but dense features have shape {dense.shape}"
        )
    for half, name in ((sparse.data, "sparse"), (dense, "dense")):
        if not np.isfinite(half).all():
            raise TreetopError(f"{name} features contain NaN or infinity: remove them first")
    return Features(sparse, dense)


def sparse_features(matrix: sp.csr_matrix) -> Features:
    """Features of a canonical float32 matrix of our own, which is not checked: it may be on disk."""
    rows = raw_csr(matrix.data, matrix.indices, matrix.indptr, matrix.shape)
    return Features(rows, np.zeros((matrix.shape[0], 0), np.float32))


def blank_texts(texts: Sequence[str]) -> np.ndarray:
    """Which of the texts are empty or white space: bool."""
    return np.array([not text or text.isspace() for text in texts], bool)


def sparse_alone(X: Features) -> sp.csr_matrix:
    """All features as one sparse matrix, whichever half they are in."""
    if not X.widths[1]:
        return X.sparse
    return canonical(sp.hstack([X.sparse, sp.csr_matrix(X.dense)], "csr"))


def canonical(matrix: object) -> sp.csr_matrix:
    """float32 CSR with ascending, unique int32 indices. Does not modify `matrix`."""
    if has_types_of_kernels(matrix) and matrix.has_canonical_format:
        return raw_csr(matrix.data, matrix.indices, matrix.indptr, matrix.shape)
    csr = sp.csr_matrix(matrix)
    csr = sp.csr_matrix((csr.data.astype(np.float32, copy=False), csr.indices, csr.indptr), csr.shape)
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    return raw_csr(csr.data, csr.indices.astype(np.int32, copy=False), csr.indptr, csr.shape)


def has_types_of_kernels(matrix: Any) -> TypeGuard[sp.csr_matrix]:
    """Whether only its pointers may have to be converted: each new matrix takes scipy a while."""
    return isinstance(matrix, sp.csr_matrix) and (matrix.data.dtype, matrix.indices.dtype) == TYPES


def cat(
    tfidf: sp.csr_matrix,
    dnn: np.ndarray,
    dense_weight: float = 1.0,
    center: np.ndarray | None = None,
    scale_sparse: bool = True,
) -> Features:
    """Φ_cat: the rows of both halves scaled to length 1, the dense half multiplied by `dense_weight`.

    With `center`, the scaled dense half is centered and scaled again. Rows of zeros stay zero. Without
    `scale_sparse`, the sparse half is taken as it is.
    """
    pair = features(tfidf, dnn)
    sparse = pair.sparse
    if scale_sparse:
        norms = np.sqrt(Features(sparse, pair.dense[:, :0]).squared_norms())
        scale = np.repeat(1 / np.maximum(norms, 1e-12), np.diff(sparse.indptr))
        sparse = raw_csr(sparse.data * scale, sparse.indices, sparse.indptr, tfidf.shape)
    dense = unit_rows(pair.dense)
    if center is not None:
        dense = unit_rows(np.where(dense.any(axis=1, keepdims=True), dense - center, 0))
    return Features(sparse, np.float32(dense_weight) * dense)


def unit_rows(dense: np.ndarray) -> np.ndarray:
    """Rows scaled to length 1: float32. Rows of zeros stay zero."""
    norms = np.linalg.norm(dense, axis=1, keepdims=True)
    return np.asarray(dense / np.maximum(norms, 1e-12), np.float32)


def center_of(dnn: np.ndarray) -> np.ndarray:
    """The mean of the rows after scaling them to length 1: float32."""
    return np.asarray(unit_rows(dnn).mean(axis=0, dtype=np.float64), np.float32)


def on_dense_half(
    weight: np.ndarray,
    bias: np.ndarray,
    dnn: np.ndarray,
    dense_weight: float,
    center: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Weights and bias for the dense half that `cat` makes, equivalent to a linear score of Φ_dnn.

    `weight` is labels x width, `bias` has one entry per label. `cat` discards the length of each
    document's vector; the mean length of those in `dnn` is used for all documents.
    """
    length = np.linalg.norm(dnn, axis=1).mean(dtype=np.float64)
    if center is None:
        return np.float32(length / dense_weight) * weight, bias
    spread = np.linalg.norm(unit_rows(dnn) - center, axis=1).mean(dtype=np.float64)
    shifted_bias = bias + np.float32(length) * (weight @ center)
    return np.float32(length * spread / dense_weight) * weight, shifted_bias


def scipy_csr(matrix: sp.csr_matrix) -> sp.csr_matrix:
    """A matrix of `raw_csr` for scipy, which wants indices and pointers of one type."""
    if matrix.nnz > np.iinfo(np.int32).max:
        return sp.csr_matrix((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape)
    converted = copy(matrix)
    converted.indptr = matrix.indptr.astype(np.int32)
    return converted


@lru_cache(maxsize=64)
def empty_row(columns: int, dtype: np.dtype[Any]) -> sp.csr_matrix:
    """A row to copy, which takes a seventh of the time of a new one."""
    return sp.csr_matrix((1, columns), dtype=dtype)


def raw_csr(
    data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, shape: tuple[int, int]
) -> sp.csr_matrix:
    """CSR with an int64 indptr, which scipy would narrow to int32 if it is small."""
    one_row = shape[0] == 1
    csr = copy(empty_row(shape[1], data.dtype)) if one_row else sp.csr_matrix(shape, dtype=data.dtype)
    csr.data, csr.indices, csr.indptr = data, indices, indptr.astype(np.int64, copy=False)
    return csr
