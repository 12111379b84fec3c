"""Which weights of a cluster are kept."""

from __future__ import annotations

import numpy as np

from treetop.kernels import pruning as kernels
from treetop.ranking.weights import ClusterWeights
from treetop.settings.parts import RankerSettings


def largest_weights(
    weights: np.ndarray, features: np.ndarray, children: int, settings: RankerSettings
) -> ClusterWeights:
    """Return the weights of a cluster's children without those that the settings prune.

    `weights` are float32, blocks x inputs x children of a block, where the inputs are the sparse
    `features` (int32), the columns of the dense half, and the bias.
    """
    columns = features.size
    limits, counts = np.empty(weights.shape[::2], np.float32), np.empty(columns, np.int64)
    most = settings.max_weights or 0
    rows, total = kernels.count_kept(weights, settings.prune_below, most, limits, counts)
    kept = np.empty(rows, np.int32), np.empty(rows, np.int64)
    values = np.empty(total, np.int32), np.empty(total, np.float32)
    kernels.copy_kept(weights, limits, counts, features, *kept, *values)
    by_child = np.swapaxes(weights[:, columns:], 0, 1).reshape(-1, limits.size)[:, :children]
    biases = np.float32(settings.bias or 0.0) * by_child[-1]
    # A copy: `weights` are working memory, which the next cluster overwrites.
    return ClusterWeights(*kept, *values, np.array(by_child[:-1], order="C"), biases)
