"""Which weights are kept: those of largest magnitude."""

import numpy as np

from treetop.kernels import helper, maker
from treetop.kernels.arrays import empty, full
from treetop.kernels.sparse import nth_largest


@maker
def bounds(weights, columns, threshold, most):
    """For each label the magnitude a weight must exceed to be kept."""
    limits = full((weights.shape[0], weights.shape[2]), threshold, np.float32)
    if 0 < most < columns:
        column = empty(columns, np.float32)
        for block in range(weights.shape[0]):
            for lane in range(weights.shape[2]):
                for feature in range(columns):
                    column[feature] = abs(weights[block, feature, lane])
                bound = nth_largest(column, columns, most)
                limits[block, lane] = max(limits[block, lane], bound)
    return limits


@helper
def count_kept(weights, limits, counts):
    """Number of weights kept for each feature; returns of how many features, and their sum."""
    rows = total = 0
    for block in range(weights.shape[0]):
        for feature in range(counts.size):
            kept = 0
            for lane in range(weights.shape[2]):
                kept += abs(weights[block, feature, lane]) > limits[block, lane]
            if kept and not counts[feature]:
                rows += 1
            counts[feature] += kept
            total += kept
    return rows, total


@helper
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


@maker
def prune(weights, columns, features, threshold, most):
    """The weights of largest magnitude, sorted by feature."""
    limits = bounds(weights, columns, threshold, most)
    counts = full(columns, 0, np.int64)
    rows, total = count_kept(weights, limits, counts)
    out_features, out_ends = empty(rows, np.int32), empty(rows, np.int64)
    children, values = empty(total, np.int32), empty(total, np.float32)
    copy_kept(weights, limits, counts, features, out_features, out_ends, children, values)
    return out_features, out_ends, children, values
