"""Balanced 2-means on unit vectors: the step from which label trees are made.

With s the sum of the left side, T the sum of both, a = ‖s‖ and b = ‖T - s‖, a vector z is nearer to
the left centre the larger z·s/a - z·(T - s)/b is. z·T never changes, so a pass takes one dot product
per vector, and s changes only by the vectors that switch sides.
"""

import numpy as np

from treetop.kernels import array, f4, helper, hybrid, i8, kernel, maker, u1, void
from treetop.kernels.arrays import empty, full
from treetop.kernels.sparse import nth_largest

# A pass that moves fewer than one in this many members is the last one.
SETTLED = 1000


@helper
def dot_row(indptr, indices, data, dense, row, vector, columns):
    """Row (sparse half, then dense half) times a dense vector."""
    total = np.float32(0.0)
    for at in range(indptr[row], indptr[row + 1]):
        total += data[at] * vector[indices[at]]
    for at in range(dense.shape[1]):
        total += dense[row, at] * vector[columns + at]
    return total


@helper
def add_row(indptr, indices, data, dense, row, sign, vector, columns):
    """Add a row, times `sign`, to a dense vector."""
    for at in range(indptr[row], indptr[row + 1]):
        vector[indices[at]] += sign * data[at]
    for at in range(dense.shape[1]):
        vector[columns + at] += sign * dense[row, at]


@helper
def clear_row(indptr, indices, row, vector):
    """Set to zero what a row may have written to a dense vector."""
    for at in range(indptr[row], indptr[row + 1]):
        vector[indices[at]] = 0.0


@helper
def clear_dense(vector, columns):
    """Set to zero what belongs to the dense half."""
    for at in range(columns, vector.size):
        vector[at] = 0.0


@helper
def next_random(state, limit):
    """Next random number below `limit`, and the next state (splitmix64)."""
    state += np.uint64(0x9E3779B97F4A7C15)
    value = state
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    value ^= value >> np.uint64(31)
    return state, np.int64(value % np.uint64(limit))


@maker
def cut(scores, members, left_size):
    """1 for the `left_size` members of highest score, ties to the lower number; else 0."""
    spare = empty(scores.size, np.float64)
    for at in range(scores.size):
        spare[at] = scores[at]
    bound = nth_largest(spare, scores.size, left_size - 1)
    sides = full(members.size, 0, np.uint8)
    room = left_size
    for at in range(scores.size):
        if scores[at] > bound:
            sides[at] = 1
            room -= 1
    for at in range(scores.size):
        if room > 0 and scores[at] == bound:
            sides[at] = 1
            room -= 1
    return sides


@maker
def left_scores(left, whole, sides):
    """How much nearer each member is to the left centre; `left` is z·s, `whole` is z·T."""
    squared_left = 0.0
    crossed = 0.0
    squared_whole = 0.0
    for at in range(sides.size):
        squared_whole += whole[at]
        if sides[at]:
            squared_left += left[at]
            crossed += whole[at]
    squared_right = squared_whole - 2.0 * crossed + squared_left
    a = 1.0 / np.sqrt(max(squared_left, 1e-12))
    b = 1.0 / np.sqrt(max(squared_right, 1e-12))
    scores = empty(left.size, np.float64)
    for at in range(left.size):
        scores[at] = left[at] * (a + b) - whole[at] * b
    return scores


@kernel(void(*hybrid, array(i8), i8, i8, i8, i8, array(f4), array(u1)))
def bisect(indptr, indices, data, dense, members, columns, left_size, passes, seed, vector, cancel):
    """Reorder `members` so that the first `left_size` are one cluster and the rest the other.

    `vector` is zeroed scratch of all columns, and zero again afterwards. Within a side, members are
    ascending.
    """
    count = members.size
    state, first = next_random(np.uint64(seed), count)
    state, second = next_random(state, count - 1)
    second += second >= first
    left, whole = empty(count, np.float64), empty(count, np.float64)

    add_row(indptr, indices, data, dense, members[first], 1.0, vector, columns)
    add_row(indptr, indices, data, dense, members[second], -1.0, vector, columns)
    for at in range(count):
        left[at] = dot_row(indptr, indices, data, dense, members[at], vector, columns)
    sides = cut(left, members, left_size)
    clear_row(indptr, indices, members[first], vector)
    clear_row(indptr, indices, members[second], vector)
    clear_dense(vector, columns)

    for at in range(count):
        add_row(indptr, indices, data, dense, members[at], 1.0, vector, columns)
    for at in range(count):
        whole[at] = dot_row(indptr, indices, data, dense, members[at], vector, columns)
    for at in range(count):
        if not sides[at]:
            add_row(indptr, indices, data, dense, members[at], -1.0, vector, columns)

    for _ in range(passes):
        if cancel[0]:
            break
        for at in range(count):
            left[at] = dot_row(indptr, indices, data, dense, members[at], vector, columns)
        following = cut(left_scores(left, whole, sides), members, left_size)
        moved = 0
        for at in range(count):
            if following[at] != sides[at]:
                moved += 1
                sign = 1.0 if following[at] else -1.0
                add_row(indptr, indices, data, dense, members[at], sign, vector, columns)
        sides = following
        if moved <= count // SETTLED:
            break

    for at in range(count):
        clear_row(indptr, indices, members[at], vector)
    clear_dense(vector, columns)
    before = empty(count, np.int64)
    for at in range(count):
        before[at] = members[at]
    left_place, right_place = 0, left_size
    for at in range(count):
        if sides[at]:
            members[left_place] = before[at]
            left_place += 1
        else:
            members[right_place] = before[at]
            right_place += 1
