"""Which weights of a cluster are kept: those of largest magnitude.

Weights are as `descent` leaves them, blocks x features x lanes, with the dense half behind.
"""

import numpy as np

from treetop.kernels import array, const, f4, f8, helper, i4, i8, kernel, void
from treetop.kernels.arrays import empty
from treetop.kernels.signatures import Tuple
from treetop.kernels.sparse import nth_largest


@helper
def raise_limits(weights, columns, most, column, limits):
    """Let each label keep at most so many weights; `column` has room for those of one label."""
    for block in range(weights.shape[0]):
        for lane in range(weights.shape[2]):
            for feature in range(columns):
                column[feature] = abs(weights[block, feature, lane])
            bound = nth_largest(column, columns, most)
            limits[block, lane] = max(limits[block, lane], bound)


@kernel(Tuple((i8, i8))(const(f4, 3), f8, i8, array(f4, 2), array(i8)))
def count_kept(weights, threshold, most, limits, counts):
    """Count the kept weights of each sparse feature; returns of how many features, and their sum.

    `limits` becomes what the magnitude of a label's weights must exceed: at least `threshold`, and with
    `most` above 0 as much as lets so many of them stay.
    """
    columns = counts.size
    for block in range(weights.shape[0]):
        for lane in range(weights.shape[2]):
            limits[block, lane] = threshold
    if 0 < most < columns:
        raise_limits(weights, columns, most, empty(columns, np.float32), limits)
    for feature in range(columns):
        counts[feature] = 0
    rows = total = 0
    for block in range(weights.shape[0]):
        for feature in range(columns):
            kept = 0
            for lane in range(weights.shape[2]):
                kept += abs(weights[block, feature, lane]) > limits[block, lane]
            if kept and not counts[feature]:
                rows += 1
            counts[feature] += kept
            total += kept
    return rows, total


@kernel(
    void(
        const(f4, 3),
        const(f4, 2),
        const(i8),
        const(i4),
        array(i4),
        array(i8),
        array(i4),
        array(f4),
    )
)
def copy_kept(weights, limits, counts, features, out_features, out_ends, children, values):
    """Write the kept weights feature by feature."""
    place = 0
    row = 0
    for feature in range(counts.size):
        if counts[feature] == 0:
            continue
        for block in range(weights.shape[0]):
            for lane in range(weights.shape[2]):
                value = weights[block, feature, lane]
                if abs(value) > limits[block, lane]:
                    children[place] = block * weights.shape[2] + lane
                    values[place] = value
                    place += 1
        out_features[row] = features[feature]
        out_ends[row] = place
        row += 1
