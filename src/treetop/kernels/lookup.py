"""Single weights of the rankers, for explanations, and all of them, for another layout."""

import numpy as np

from treetop.kernels import array, const, f4, helper, i4, i8, kernel, void
from treetop.kernels.arrays import empty
from treetop.kernels.lanes import float_of
from treetop.kernels.products import seek
from treetop.kernels.weights import row_types
from treetop.kernels.words import SIXTEEN, number_at, value_at


@helper
def read_row(mark, base, cells, form, count, children, values):
    """Read the weights behind a mark, those of full vectors without zeros; returns how many."""
    child_words, value_words = form[0], form[1]
    if mark < 0:
        bits = np.uint32(mark)
        children[0] = (bits >> SIXTEEN) & np.uint32(0x7FFF)
        values[0] = float_of(bits << SIXTEEN)
        return np.int64(1)
    at = np.uint64(base + (mark >> 1))
    if mark & 1:
        size = np.int64(0)
        for child in range(count):
            value = value_at(cells, at + np.uint64(value_words * child), value_words)
            children[size], values[size] = child, value
            size += value != 0.0
        return size
    size = np.int64(number_at(cells, at, child_words))
    at += np.uint64(child_words)
    for number in range(size):
        children[number] = number_at(cells, at, child_words)
        values[number] = value_at(cells, at + np.uint64(child_words), value_words)
        at += np.uint64(child_words + value_words)
    return size


@kernel(void(*row_types, const(i8), const(i4), i8, i8, array(f4)), use=None)
def weights_of(starts, rows, cells, form, child_ptr, features, cluster, child, out):
    """Weight of each of `features` for `child` of `cluster`; 0 where there is none."""
    count = child_ptr[cluster + 1] - child_ptr[cluster]
    children, values = empty(count + 1, np.int32), empty(count + 1, np.float32)
    for number in range(features.size):
        out[number] = 0.0
        feature = features[number]
        end = np.uint64(starts[feature + 1, 0])
        place = seek(rows, np.uint64(starts[feature, 0]), end, cluster)
        if place >= end or rows[place, 0] != cluster:
            continue
        mark, base = np.int64(rows[place, 1]), starts[feature, 1]
        for at in range(read_row(mark, base, cells, form, count, children, values)):
            if children[at] == child:
                out[number] = values[at]


@kernel(
    i8(*row_types, const(i8), i8, i8, i8, array(i4), array(i4), array(i4), array(f4)),
    use=None,
)
def list_weights(
    starts, rows, cells, form, child_ptr, largest, first, last, features, clusters, children, values
):
    """List the weights of the features from `first` to `last`; returns how many there are.

    They are only counted if the arrays are empty. `largest` is the size of the largest cluster.
    """
    own_children, own_values = empty(largest + 1, np.int32), empty(largest + 1, np.float32)
    total = np.int64(0)
    for feature in range(first, last):
        for place in range(starts[feature, 0], starts[feature + 1, 0]):
            cluster, mark = np.int64(rows[place, 0]), np.int64(rows[place, 1])
            count = child_ptr[cluster + 1] - child_ptr[cluster]
            size = read_row(mark, starts[feature, 1], cells, form, count, own_children, own_values)
            if values.size:
                for at in range(size):
                    features[total + at], clusters[total + at] = feature, cluster
                    children[total + at], values[total + at] = own_children[at], own_values[at]
            total += size
    return total
