"""Weights of model folders of format 2, with 32 bits per number, as they are stored now."""

import numpy as np

from treetop.kernels import array, const, helper, i4, i8, kernel, u2, u4, void
from treetop.kernels.words import WIDTH, mark_of, put_number, put_value


@helper
def read_pairs(at, pairs, full, count, children, values):
    """Read the weights of a row; returns how many."""
    if at >= 0:
        for number in range(pairs[at, 0]):
            children[number] = pairs[at + 1 + number, 0]
            values[number] = np.uint32(pairs[at + 1 + number, 1])
        return np.int64(pairs[at, 0])
    size = np.int64(0)
    for child in range(count):
        bits = full[-1 - at + child // WIDTH, child % WIDTH]
        children[size], values[size] = child, bits
        size += bits != 0
    return size


older_types = (const(i8), const(i4, 2), const(i4, 2), const(u4, 2), const(i8))


@kernel(
    void(
        *older_types,
        i8,
        i8,
        i8,
        i8,
        array(i4),
        array(u4),
        array(i8, 2),
        array(i4, 2),
        array(u2),
    ),
    use=None,
)
def from_format_2(
    row_ptr,
    rows,
    pairs,
    full,
    child_ptr,
    child_words,
    value_words,
    first,
    last,
    children,
    values,
    starts,
    out_rows,
    cells,
):
    """Convert the rows of the features `first` to `last`.

    Without `cells`, only count: `starts` gets the rows and cells of each feature. Otherwise these are
    where its rows and cells begin. `children` and `values` are scratch for the largest cluster.
    """
    for feature in range(first, last):
        place, at = starts[feature, 0], starts[feature, 1]
        base = at
        for row in range(row_ptr[feature], row_ptr[feature + 1]):
            cluster = rows[row, 0]
            count = child_ptr[cluster + 1] - child_ptr[cluster]
            size = read_pairs(rows[row, 1], pairs, full, count, children, values)
            if size == 0:
                continue
            mark = mark_of(size, children[0], values[0], count, child_words, value_words)
            if cells.size:
                out_rows[place, 0] = cluster
                out_rows[place, 1] = mark if mark < 0 else 2 * (at - base) + (mark & 1)
                if mark >= 0 and mark & 1:
                    for number in range(size):
                        put_value(
                            cells, at + value_words * children[number], values[number], value_words
                        )
                elif mark >= 0:
                    to = put_number(cells, at, size, child_words)
                    for number in range(size):
                        to = put_number(cells, to, children[number], child_words)
                        to = put_value(cells, to, values[number], value_words)
            place += 1
            at += np.int64(0) if mark < 0 else mark >> 1
        if not cells.size:
            starts[feature, 0], starts[feature, 1] = place, at
