"""Spherical k-means without balance, for trees as in Bonsai."""

import numpy as np

from treetop.kernels import array, const, f4, helper, hybrid, i4, i8, kernel, void
from treetop.kernels.arrays import empty


@helper
def add_to_centre(indptr, indices, data, dense, row, centre, columns):
    """Add a row to one row of the centres."""
    for at in range(indptr[row], indptr[row + 1]):
        centre[indices[at]] += data[at]
    for at in range(dense.shape[1]):
        centre[columns + at] += dense[row, at]


@kernel(void(*hybrid, const(i8), const(i4), i8, array(f4, 2)), use=None)
def sum_clusters(indptr, indices, data, dense, members, clusters, columns, centres):
    """Add every member to the centre of its cluster; `centres` is clusters x columns."""
    for at in range(members.size):
        add_to_centre(indptr, indices, data, dense, members[at], centres[clusters[at]], columns)


@kernel(i8(*hybrid, const(i8), i8, const(f4, 2), array(i4), i8, i8), use=None)
def assign(indptr, indices, data, dense, members, columns, centres, clusters, first, last):
    """Give members `first` to `last` the nearest centre; `centres` is columns x clusters.

    Returns how many changed their cluster. Ties go to the lower cluster.
    """
    scores = empty(centres.shape[1], np.float32)
    changed = 0
    for position in range(first, last):
        row = members[position]
        scores[:] = 0.0
        for at in range(indptr[row], indptr[row + 1]):
            value, column = data[at], indices[at]
            for cluster in range(scores.size):
                scores[cluster] += value * centres[column, cluster]
        for at in range(dense.shape[1]):
            for cluster in range(scores.size):
                scores[cluster] += dense[row, at] * centres[columns + at, cluster]
        best = 0
        for cluster in range(1, scores.size):
            if scores[cluster] > scores[best]:
                best = cluster
        changed += clusters[position] != best
        clusters[position] = best
    return changed
