"""Sparse matrices from users, whose arrays may not fit together."""

import numpy as np
import pytest
import scipy.sparse as sp

import treetop
from treetop.errors import TreetopError
from treetop.metrics import evaluate
from treetop.runtime.checking import check_sparse


def csr(indices, indptr, shape=(2, 3)):
    """A matrix whose arrays scipy does not check."""
    matrix = sp.csr_matrix(shape, dtype=np.float32)
    matrix.data = np.ones(len(indices), np.float32)
    matrix.indices, matrix.indptr = np.array(indices, np.int32), np.array(indptr, np.int32)
    return matrix


def coo(rows, columns, shape=(2, 3)):
    matrix = sp.coo_matrix(shape, dtype=np.float32)
    matrix.data = np.ones(len(rows), np.float32)
    matrix.coords = (np.array(rows, np.int32), np.array(columns, np.int32))
    return matrix


DAMAGED = {
    "column too large": csr([0, 3], [0, 1, 2]),
    "negative column": csr([0, -1], [0, 1, 2]),
    "pointer too large": csr([0, 1], [0, 1, 1 << 20]),
    "pointer that falls": csr([0, 1], [0, 2, 1]),
    "negative pointer": csr([0, 1], [0, -1, 2]),
    "first pointer": csr([0, 1], [1, 1, 2]),
    "too few pointers": csr([0, 1], [0, 2]),
    "row of coo": coo([0, 2], [0, 1]),
    "column of coo": coo([0, 1], [0, -1]),
    "csc": csr([0, 3], [0, 1, 2]).T,
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_a_damaged_matrix_is_refused_before_anything_follows_its_indices(kind):
    damaged = DAMAGED[kind]
    message = "is a damaged sparse matrix: its indices lead outside of its shape"
    with pytest.raises(TreetopError, match=f"the matrix {message}"):
        check_sparse(damaged, "the matrix")
    if damaged.shape != (2, 3):
        return
    X, Y = np.eye(2, 3), np.eye(2, 3)
    model = treetop.XRLinear(threads=1).fit(X, Y)
    attempts = [
        lambda: treetop.XRLinear(threads=1).fit(damaged, [["a"], ["b"]]),
        lambda: treetop.XRLinear(threads=1).fit(X, damaged),
        lambda: model.predict(damaged),
        lambda: model.evaluate(X, damaged),
        lambda: model.predict(X, candidates=damaged),
        lambda: evaluate(Y, damaged),
        lambda: evaluate(damaged, Y),
    ]
    for attempt in attempts:
        with pytest.raises(TreetopError, match=message):
            attempt()


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"])
def test_sound_matrices_of_every_format_pass(form):
    check_sparse(sp.random(6, 8, 0.3, form), "X")
    check_sparse(sp.csr_matrix((0, 5)).asformat(form), "X")
    check_sparse(sp.csr_array(np.eye(4)).asformat(form), "X")
