"""Labels and relevance aggregated up the tree: Y[t], R[t] and R̂[t]."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from treetop.labels.tree import Tree
from treetop.runtime.spool import off_memory


def binarize(matrix: sp.csr_matrix) -> sp.csr_matrix:
    """Replace every stored value by 1."""
    return sp.csr_matrix((np.ones_like(matrix.data), matrix.indices, matrix.indptr), shape=matrix.shape)


def in_tree_order(Y: sp.csr_matrix, tree: Tree) -> sp.csr_matrix:
    """Return Y[D]: the columns of Y in the order of the nodes of level D."""
    moved = sp.csr_matrix((Y.data, tree.node_of[Y.indices], Y.indptr), shape=Y.shape)
    moved.sort_indices()
    return moved


def coarser_relevance(R: sp.csr_matrix, C: sp.csr_matrix) -> sp.csr_matrix:
    """Compute R[t] = R[t+1] C[t+1], the paper's equation 6."""
    return sp.csr_matrix(R @ C)


def normalized_relevance(R: sp.csr_matrix) -> sp.csr_matrix:
    """Compute R̂[t] of the positives: each row divided by its sum. The solver gives negatives α."""
    sums = np.asarray(R.sum(axis=1)).ravel()
    scale = np.repeat(1.0 / np.maximum(sums, 1e-12), np.diff(R.indptr))
    return sp.csr_matrix((R.data * scale, R.indices, R.indptr), shape=R.shape, dtype=np.float32)


def coarser_maximum(R: sp.csr_matrix, C: sp.csr_matrix) -> sp.csr_matrix:
    """Compute R[t] as the maximum over the children of each node; R[t+1] must have sorted indices."""
    parents = C.indices[R.indices]
    rows = np.repeat(np.arange(R.shape[0]), np.diff(R.indptr))
    begins = np.flatnonzero((np.diff(parents, prepend=-1) != 0) | (np.diff(rows, prepend=-1) != 0))
    data = np.maximum.reduceat(R.data, begins) if begins.size else R.data
    indptr = np.append(0, np.cumsum(np.bincount(rows[begins], minlength=R.shape[0])))
    return sp.csr_matrix((data, parents[begins], indptr), shape=(R.shape[0], C.shape[1]))


def positive_weights(R: sp.csr_matrix, cost_sensitive: bool) -> sp.csr_matrix:
    """Return the weights of the positives: R̂ if cost-sensitive, otherwise R itself, usually 1."""
    return normalized_relevance(R) if cost_sensitive else R


def all_levels(Y: sp.csr_matrix, tree: Tree, cost_sensitive: bool = True) -> list[sp.csr_matrix]:
    """Compute R[1] … R[D] from R[D] = Y. ``binarize(R[t])`` is Y[t] of the paper's equation 5.

    Without cost-sensitive learning, the relevance of a node is the maximum of its labels'.
    """
    coarser = coarser_relevance if cost_sensitive else coarser_maximum
    levels = [in_tree_order(Y, tree)]
    for level in range(tree.depth, 1, -1):
        R = coarser(levels[0], tree.C(level))
        R.sort_indices()
        levels[0] = resting(levels[0])
        levels.insert(0, R)
    return levels


def resting(R: sp.csr_matrix) -> sp.csr_matrix:
    """The same matrix outside of memory if it is large, until its level is trained."""
    arrays = (off_memory(R.data), off_memory(R.indices), R.indptr)
    return sp.csr_matrix(arrays, shape=R.shape, copy=False)
