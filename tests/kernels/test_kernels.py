"""Small kernels against their obvious twins, and the cost of compiling all of them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from treetop.kernels import all_kernels, lanes, ngrams, sparse

# Helpers have no wrapper that Python could call.
nth_largest = njit(sparse.nth_largest.py_func)
sort_digits, sort_small = njit(ngrams.sort_digits.py_func), njit(ngrams.sort_small.py_func)


@njit
def multiply_add(table, row, scalar, out):
    lanes.store(out, 0, lanes.fma(lanes.lanes_at(table, row, 8), scalar, lanes.lanes_at(out, 0, 8)))


@njit
def add_splat(table, scalar, out):
    lanes.store(out, 0, lanes.add(lanes.lanes_at(table, 0, 4), lanes.splat(scalar, 4)))


def test_lanes_are_vectors(rng):
    table, out = rng.random((3, 8)).astype(np.float32), rng.random((1, 8)).astype(np.float32)
    expected = out[0] + table[2] * np.float32(1.5)
    multiply_add(table, 2, np.float32(1.5), out)
    np.testing.assert_allclose(out[0], expected, rtol=1e-6)
    add_splat(table, np.float32(2), out)
    np.testing.assert_allclose(out[0, :4], table[0, :4] + 2, rtol=1e-6)


def test_widths():
    assert [lanes.width_for(count) for count in (1, 4, 5, 8, 9, 16, 100)] == [4, 4, 8, 8, 16, 16, 16]


@given(st.lists(st.floats(-5, 5, width=32), min_size=1, max_size=40), st.data())
def test_nth_largest(values, data):
    rank = data.draw(st.integers(0, len(values) - 1))
    array = np.array(values, np.float32)
    assert nth_largest(array.copy(), array.size, rank) == np.sort(array)[::-1][rank]


@given(st.lists(st.integers(0, 5_000_000), max_size=300))
def test_sorts(values):
    array = np.array(values, np.int32)
    small, large = array.copy(), array.copy()
    sort_small(small, small.size)
    sort_digits(large, large.size, 5_000_001, np.empty_like(large), np.empty(2048, np.int64))
    np.testing.assert_array_equal(small, np.sort(array))
    np.testing.assert_array_equal(large, np.sort(array))


def test_every_kernel_compiles():
    kernels = list(all_kernels())
    for kernel in kernels:
        kernel.compile()
    names = {kernel.function.__qualname__ for kernel in kernels}
    assert len(names) == 36 == len(kernels)
