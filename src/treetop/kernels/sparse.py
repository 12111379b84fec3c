"""Sums and selections over sparse rows."""

import numpy as np

from treetop.kernels import PREDICTION, array, const, csr, f4, f8, helper, i4, i8, kernel, u1, void
from treetop.kernels.arrays import empty, full


@kernel(i8(*csr, i8, i8, *csr, const(f8), array(f4), array(i4), array(f4), array(i8), array(f4)))
def unit_row_sums(
    group_ptr,
    group_rows,
    group_weights,
    first,
    last,
    indptr,
    indices,
    data,
    other_squares,
    total,
    out_indices,
    out_data,
    out_ends,
    out_scales,
):
    """For each group the weighted sum of its sparse rows, scaled to length 1.

    `other_squares` is what each group's other half adds to the square of the length. Returns the
    number of values written.

    Group g consists of ``group_rows[group_ptr[g]:group_ptr[g + 1]]``. `total` is zeroed scratch, one
    value per column. Columns come out in the order of their first occurrence.
    """
    written = 0
    seen = full(total.size, False, np.bool_)
    for group in range(first, last):
        start = written
        for at in range(group_ptr[group], group_ptr[group + 1]):
            row, weight = group_rows[at], group_weights[at]
            for place in range(indptr[row], indptr[row + 1]):
                column = indices[place]
                if not seen[column]:
                    seen[column] = True
                    out_indices[written] = column
                    written += 1
                total[column] += weight * data[place]
        squares = other_squares[group]
        for at in range(start, written):
            squares += total[out_indices[at]] * total[out_indices[at]]
        scale = np.float32(1.0 / np.sqrt(max(squares, 1e-24)))
        for at in range(start, written):
            column = out_indices[at]
            out_data[at] = scale * total[column]
            total[column] = 0.0
            seen[column] = False
        out_ends[group - first] = written
        out_scales[group] = scale
    return written


@kernel(void(*csr, i8, i8, const(i8), i8, const(f4), array(i4), array(f4)), use=PREDICTION)
def place_rows(indptr, indices, data, first, last, starts, shift, scales, out_indices, out_data):
    """Copy rows `first` to `last` to their `starts`, columns moved by `shift`, values scaled."""
    for row in range(first, last):
        to = starts[row]
        for place in range(indptr[row], indptr[row + 1]):
            out_indices[to] = indices[place] + shift
            out_data[to] = scales[row] * data[place]
            to += 1


@kernel(void(const(i8), const(i4), i8, i8, const(u1), array(i8)))
def count_seen(indptr, indices, first, last, seen, counts):
    """How many values of each row are in columns that are `seen`."""
    for row in range(first, last):
        count = 0
        for place in range(indptr[row], indptr[row + 1]):
            count += seen[indices[place]]
        counts[row] = count


@kernel(void(*csr, i8, i8, const(u1), const(i8), f4, array(i4), array(f4)))
def copy_seen(indptr, indices, data, first, last, seen, starts, scale, out_indices, out_data):
    """Copy the values in columns that are `seen` to each row's start, scaled."""
    for row in range(first, last):
        to = starts[row]
        for place in range(indptr[row], indptr[row + 1]):
            if seen[indices[place]]:
                out_indices[to] = indices[place]
                out_data[to] = scale * data[place]
                to += 1


@helper
def nth_largest(values, count, rank):
    """The `rank`-th largest (from 0) of the first `count` values, which are reordered."""
    low, high = 0, count - 1
    while low < high:
        pivot = values[(low + high) >> 1]
        left, right = low, high
        while left <= right:
            while values[left] > pivot:
                left += 1
            while values[right] < pivot:
                right -= 1
            if left <= right:
                values[left], values[right] = values[right], values[left]
                left += 1
                right -= 1
        if rank <= right:
            high = right
        elif rank >= left:
            low = left
        else:
            break
    return values[rank]


@kernel(i8(*csr, i8, i8, i8, array(i4), array(f4), array(i8)))
def largest_in_rows(indptr, indices, data, first, last, most, out_indices, out_data, out_ends):
    """The `most` values of largest magnitude in each row, in the row's order; returns how many."""
    longest = 0
    for row in range(first, last):
        longest = max(longest, indptr[row + 1] - indptr[row])
    scratch = empty(longest, np.float32)
    written = 0
    for row in range(first, last):
        start, size = indptr[row], indptr[row + 1] - indptr[row]
        bound = np.float32(-1.0)
        if size > most:
            for at in range(size):
                scratch[at] = abs(data[start + at])
            bound = nth_largest(scratch, size, most - 1)
        room = most
        for at in range(start, start + size):
            if abs(data[at]) > bound:
                room -= 1
        for at in range(start, start + size):
            magnitude = abs(data[at])
            tied = magnitude == bound and room > 0
            if magnitude > bound or tied:
                out_indices[written] = indices[at]
                out_data[written] = data[at]
                written += 1
                room -= tied
        out_ends[row - first] = written
    return written
