"""Small kernels against their obvious twins, and the cost of compiling all of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

import treetop.kernels.compiling  # noqa: F401  numba learns what helpers and lanes stand for
from treetop.kernels import all_kernels, arrays, lanes, ngrams, sparse, text

# Helpers have no wrapper that Python could call.
nth_largest = njit(sparse.nth_largest.function)
sort_digits, sort_small = njit(ngrams.sort_digits.function), njit(ngrams.sort_small.function)


@njit
def multiply_add(table, row, scalar, out):
    lanes.store(out, 0, lanes.fma(lanes.lanes_at(table, row, 8), scalar, lanes.lanes_at(out, 0, 8)))


@njit
def calculate(table, scalar, out, largest):
    first, second = lanes.lanes_at(table, 0, 4), lanes.lanes_at(table, 1, 4)
    lanes.store(out, 0, first + lanes.splat(scalar, 4))
    lanes.store(out, 1, first - second)
    lanes.store(out, 2, first * second)
    lanes.store(out, 3, first / second)
    lanes.store(out, 4, max(first, second))
    lanes.store(out, 5, min(first, second))
    largest[0] = lanes.largest_lane(first)


def test_lanes_are_vectors(rng):
    table, out = rng.random((3, 8)).astype(np.float32), rng.random((1, 8)).astype(np.float32)
    expected = out[0] + table[2] * np.float32(1.5)
    multiply_add(table, 2, np.float32(1.5), out)
    np.testing.assert_allclose(out[0], expected, rtol=1e-6)


def test_lanes_calculate_as_numbers_do(rng):
    table, out = rng.random((2, 4)).astype(np.float32) - np.float32(0.5), np.empty((6, 4), np.float32)
    largest, (a, b) = np.empty(1, np.float32), table
    calculate(table, np.float32(2), out, largest)
    assert out.tolist() == [
        row.tolist() for row in (a + 2, a - b, a * b, a / b, np.maximum(a, b), np.minimum(a, b))
    ]
    assert largest[0] == a.max()


@njit
def new_arrays(rows, columns):
    grid = arrays.full((rows, columns), 7, np.float32)
    if columns:
        grid[-1, -1] = 8
    line = arrays.empty(rows, np.int32)
    for row in range(rows):
        line[row] = row
    return grid, line, arrays.full(columns, True, np.bool_)


def test_new_arrays_are_those_of_numpy():
    for made, expected in zip(
        new_arrays(2, 3),
        (np.float32([[7, 7, 7], [7, 7, 8]]), np.int32([0, 1]), np.full(3, True)),
        strict=True,
    ):
        np.testing.assert_array_equal(made, expected)
        assert (made.dtype, made.strides) == (expected.dtype, expected.strides)
    grid, line, flags = new_arrays(1, 0)
    assert (grid.shape, line.tolist(), flags.shape) == ((1, 0), [0], (0,))


def test_an_array_for_which_there_is_no_memory_is_an_error():
    with pytest.raises(MemoryError):
        new_arrays(1 << 30, 1 << 30)


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


def test_a_kernel_is_called_with_arrays_of_its_types_only():
    hashes, ids = np.array([5, 6], np.uint64), np.array([10, 20], np.int32)
    keys, values = np.zeros(8, np.uint64), np.zeros(8, np.int32)
    sealed = keys.copy()
    sealed.flags.writeable = False
    for wrong in (keys.astype(np.int64), keys[::2], keys.reshape(2, 4), sealed, 3, None):
        with pytest.raises(TypeError, match="fill_table: argument 3 is "):
            text.fill_table(hashes, ids, wrong, values)
    with pytest.raises(TypeError, match="3 arguments instead of 4"):
        text.fill_table(hashes, ids, keys)
    with pytest.raises(TypeError, match=r"argument 5 is 0\.5, not Scalar"):
        ngrams.lengthen(ids, ids, ids, np.zeros(1, np.int64), 0.5, hashes, ids, ids)


def test_what_kernels_call_cannot_be_called_from_python():
    with pytest.raises(TypeError, match="find: can only be called by kernels"):
        text.find(np.zeros(4, np.uint64), 1)
    with pytest.raises(TypeError, match="fma: can only be called by kernels"):
        lanes.fma(1, 2, 3)


def test_every_kernel_compiles():
    kernels = list(all_kernels())
    for kernel in kernels:
        kernel.compile()
    names = {kernel.function.__qualname__ for kernel in kernels}
    assert len(names) == 43 == len(kernels)
