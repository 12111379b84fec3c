"""Weights of clusters arranged in rows by feature, as the search reads them.

An entry is a feature of a cluster and its mark (see `words`); entries ascend by feature.
"""

import numpy as np

from treetop.kernels import array, const, i4, i8, kernel, u2, void


@kernel(void(const(i4, 2), array(i8, 2)))
def count_entries(entries, counts):
    """Add the entries of a cluster, and their words, to the `counts` of their features."""
    for at in range(len(entries)):
        feature, mark = entries[at, 0], entries[at, 1]
        counts[feature, 0] += 1
        if mark >= 0:
            counts[feature, 1] += mark >> 1


@kernel(void(const(i4, 2), const(i8), array(i8, 2)))
def cut_entries(entries, edges, places):
    """Where the features from each of the ascending `edges` on begin: in `entries`, in their words."""
    at, words = np.int64(0), np.int64(0)
    for part in range(edges.size):
        while at < len(entries) and entries[at, 0] < edges[part]:
            mark = entries[at, 1]
            if mark >= 0:
                words += mark >> 1
            at += 1
        places[part, 0], places[part, 1] = at, words


@kernel(void(const(i4, 2), const(u2), i8, i8, const(i8, 2), array(i8, 2), array(i4, 2), array(u2)))
def place_entries(entries, words, cluster, first, starts, cursors, rows, cells):
    """Copy entries of a cluster and their `words` into the rows and cells of features from `first` on.

    `starts` is where the rows and cells of each of these features begin, counted from the beginning of
    `rows` and `cells`; `cursors` is where the next ones go.
    """
    source = np.int64(0)
    for at in range(len(entries)):
        feature, mark = entries[at, 0] - first, np.int64(entries[at, 1])
        place, to = cursors[feature, 0], cursors[feature, 1]
        rows[place, 0] = cluster
        rows[place, 1] = mark if mark < 0 else 2 * (to - starts[feature, 1]) + (mark & 1)
        size = np.int64(0) if mark < 0 else mark >> 1
        for word in range(size):
            cells[to + word] = words[source + word]
        source += size
        cursors[feature, 0], cursors[feature, 1] = place + 1, to + size
