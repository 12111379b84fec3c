"""Features in two halves, sparse and dense, and how Φ_cat scales and centers them."""

import numpy as np
import pytest
import scipy.sparse as sp

from treetop.errors import TreetopError
from treetop.features.hybrid import (
    cat,
    center_of,
    features,
    on_dense_half,
    raw_csr,
    scipy_csr,
    unit_rows,
)


def test_indices_are_sorted_and_summed_in_a_copy():
    messy = sp.csr_matrix((np.array([1.0, 2.0, 4.0]), np.array([3, 1, 3]), np.array([0, 3])), (1, 5))
    before = messy.indices.copy()
    actual = features(messy)
    assert actual.sparse.indices.tolist() == [1, 3]
    assert actual.sparse.data.tolist() == [2.0, 5.0]
    np.testing.assert_array_equal(messy.indices, before)


def test_squared_norms(rng):
    X = sp.random(7, 9, 0.3, "csr", np.float32, rng)
    dense = rng.standard_normal((7, 4)).astype(np.float32)
    expected = (X.toarray() ** 2).sum(axis=1) + (dense**2).sum(axis=1)
    np.testing.assert_allclose(features(X, dense).squared_norms(), expected, rtol=1e-5)


def test_cat_scales_both_halves_and_keeps_rows_of_zeros():
    X = sp.csr_matrix(np.array([[3.0, 4.0], [0.0, 0.0]], np.float32))
    both = cat(X, np.array([[0.0, 0.0], [0.0, 2.0]], np.float32))
    np.testing.assert_allclose(both.sparse.toarray(), [[0.6, 0.8], [0, 0]], rtol=1e-6)
    np.testing.assert_allclose(both.dense, [[0, 0], [0, 1]], rtol=1e-6)


@pytest.mark.parametrize(
    ("sparse", "dense", "message"),
    [
        (sp.csr_matrix([[np.nan]]), None, "sparse features contain NaN or infinity"),
        (None, np.array([[np.inf]]), "dense features contain NaN or infinity"),
        (sp.csr_matrix((2, 3)), np.zeros((3, 1)), "2 rows"),
        (None, None, "no features"),
    ],
)
def test_invalid_features_are_refused(sparse, dense, message):
    with pytest.raises(TreetopError, match=message):
        features(sparse, dense)


def test_cat_with_a_center_and_a_weight(rng):
    tfidf = sp.random(6, 8, 0.5, "csr", np.float32, rng)
    dnn = rng.standard_normal((6, 4)).astype(np.float32) + 3
    dnn[2] = 0
    center = center_of(dnn)
    actual = cat(tfidf, dnn, 0.5, center)
    unit = dnn / np.maximum(np.linalg.norm(dnn, axis=1, keepdims=True), 1e-12)
    np.testing.assert_allclose(center, unit.mean(axis=0), atol=1e-6)
    moved = unit - center
    expected = 0.5 * moved / np.linalg.norm(moved, axis=1, keepdims=True)
    expected[2] = 0  # a row of zeros stays zero
    np.testing.assert_allclose(actual.dense, expected, atol=1e-5)


@pytest.mark.parametrize("centered", [False, True])
def test_a_linear_score_of_vectors_carries_over_to_the_dense_half(rng, centered):
    # Two opposite directions: all vectors are as long, and as far from their center.
    side = rng.standard_normal(6).astype(np.float32)
    vectors = 3 * unit_rows(np.array([1 + side, 1 - side, 1 + side, 1 - side]))
    weight = rng.standard_normal((5, 6)).astype(np.float32)
    bias = rng.standard_normal(5).astype(np.float32)
    center = center_of(vectors) if centered else None
    half = cat(sp.csr_matrix((4, 0), dtype=np.float32), vectors, 0.35, center).dense
    shifted_weight, shifted_bias = on_dense_half(weight, bias, vectors, 0.35, center)
    scores = half @ shifted_weight.T + shifted_bias
    np.testing.assert_allclose(scores, vectors @ weight.T + bias, atol=1e-4)


def test_scipy_takes_what_is_made_for_it():
    """Of a matrix with indices and pointers of two types, it cannot make most other formats."""
    expected = np.array([[0, 2, 0], [1, 0, 3]], np.float32)
    indices, ends = np.array([1, 0, 2], np.int32), np.array([0, 1, 3])
    raw = raw_csr(np.array([2, 1, 3], np.float32), indices, ends, (2, 3))
    found = scipy_csr(raw)
    assert (found.indptr.dtype, raw.indptr.dtype) == (np.int32, np.int64)
    np.testing.assert_array_equal(sp.coo_matrix(found).toarray(), expected)
    np.testing.assert_array_equal(sp.csc_matrix(found).toarray(), expected)
