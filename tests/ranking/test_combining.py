"""The largest of some values, in a row of a matrix and in an array."""

import numpy as np
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from treetop.ranking.combining import best_of, largest


def slow_largest(values, count):
    """Positions by descending value, then ascending."""
    return sorted(range(len(values)), key=lambda at: (-values[at], at))[:count]


@given(st.lists(st.integers(0, 4), max_size=12), st.integers(0, 14))
def test_the_largest_values_come_first_and_ties_by_position(values, count):
    assert largest(np.array(values, np.float32), count).tolist() == slow_largest(values, count)
    assert largest(np.array(values, np.int64), count).tolist() == slow_largest(values, count)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=8), st.integers(1, 9))
def test_the_best_of_a_row_are_its_largest_values(values, count):
    row = best_of(sp.csr_matrix(np.array([values], np.float32)), count)
    assert row.indices.tolist() == slow_largest(values, count)
    assert row.data.tolist() == [values[at] for at in row.indices]
