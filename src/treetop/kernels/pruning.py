"""Which weights are kept: those of largest magnitude."""

import numpy as np

from treetop.kernels import helper, maker
from treetop.kernels.sparse import nth_largest


@maker
def bounds(weights, columns, threshold, most):
    """For each label the magnitude a weight must exceed to be kept."""
    limits = np.full((weights.shape[0], weights.shape[2]), threshold, np.float32)
    if 0 < most < columns:
        column = np.empty(columns, np.float32)
        for block in range(weights.shape[0]):
            for lane in range(weights.shape[2]):
                for feature in range(columns):
                    column[feature] = abs(weights[block, feature, lane])
                bound = nth_largest(column, columns, most)
                limits[block, lane] = max(limits[block, lane], bound)
    return limits


@helper
def count_kept(weights, limits, counts):
    """Number of weights kept for each feature; returns their sum."""
    total = 0
    for block in range(weights.shape[0]):
        for feature in range(counts.size):
            kept = 0
            for lane in range(weights.shape[2]):
                kept += abs(weights[block, feature, lane]) > limits[block, lane]
            counts[feature] += kept
            total += kept
    return total


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
    counts = np.zeros(columns, np.int64)
    total = count_kept(weights, limits, counts)
    rows = np.count_nonzero(counts)
    out_features, out_ends = np.empty(rows, np.int32), np.empty(rows, np.int64)
    children, values = np.empty(total, np.int32), np.empty(total, np.float32)
    copy_kept(weights, limits, counts, features, out_features, out_ends, children, values)
    return out_features, out_ends, children, values
