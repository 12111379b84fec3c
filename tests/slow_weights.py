"""The slow, obvious reader of the weights' layout: the twin of every kernel that reads it."""

import struct

import numpy as np


def slow_weights(weights):
    """Yield feature, cluster, child and value of every weight, in the order of the rows."""
    child_words, value_words = weights.form.tolist()
    cells = weights.cells.tolist()

    def number(at):
        return cells[at] if child_words == 1 else cells[at] + 65536 * cells[at + 1]

    def value(at):
        lower, upper = (0, cells[at]) if value_words == 1 else cells[at : at + 2]
        return struct.unpack("<f", struct.pack("<HH", lower, upper))[0]

    for feature in range(len(weights.starts) - 1):
        first, base = weights.starts[feature].tolist()
        for cluster, p in weights.rows[first : weights.starts[feature + 1, 0]].tolist():
            at = base + p // 2
            if p < 0:
                (single,) = struct.unpack("<f", struct.pack("<HH", 0, p % 65536))
                yield feature, cluster, (p + 2**31) // 65536, single
            elif p % 2 == 0:
                length = number(at)
                at += child_words
                for _ in range(length):
                    yield feature, cluster, number(at), value(at + child_words)
                    at += child_words + value_words
            else:
                for child in range(int(np.diff(weights.child_ptr)[cluster])):
                    yield feature, cluster, child, value(at + value_words * child)


def slow_matrix(weights, dense_columns=0):
    """All weights as a matrix, float64: features, then dense columns, x nodes."""
    features, nodes = len(weights.starts) - 1, int(weights.child_ptr[-1])
    W = np.zeros((features + dense_columns, nodes))
    for feature, cluster, child, value in slow_weights(weights):
        W[feature, weights.child_ptr[cluster] + child] = value
    for first, last in zip(weights.child_ptr[:-1], weights.child_ptr[1:], strict=True):
        block = weights.dense[dense_columns * first : dense_columns * last]
        W[features:, first:last] = block.reshape(dense_columns, last - first)
    return W
