"""Scores of given labels in one tree, each from a node above it whose score is known.

Only the clusters on the paths to these labels are opened, level by level, once per document.
"""

from typing import NamedTuple

import numpy as np

from treetop.kernels import PREDICTION, array, const, f4, helper, hybrid, i8, kernel, u1, void
from treetop.kernels.arrays import empty
from treetop.kernels.beams import new_beam, open_clusters
from treetop.kernels.pooling import LISTED, sort_labels
from treetop.kernels.products import add_weights, find_weights, score_some_dense
from treetop.kernels.search import start_row
from treetop.kernels.transforms import ADD, transform_all
from treetop.kernels.weights import DocumentRows, SearchWeights, longest_row, weight_types
from treetop.kernels.words import WIDTH

# A label to score is one number, by which they are sorted: its node and its place in the pool.
NODE, PLACE = np.int64(32), np.int64((1 << 32) - 1)


class Paths(NamedTuple):
    """The labels of a document that are missing, ascending by node."""

    keys: np.ndarray  # node and place in the document's part of the pool
    nodes: np.ndarray  # labels x levels: the node of each level above the label, then its own
    begins: np.ndarray  # the level of the node whose score is known
    entries: np.ndarray  # the open cluster that leads on
    scores: np.ndarray  # of the lowest node on the path that has been scored


@helper
def most_missing(ptr, above):
    """The most labels that are missing of a document."""
    most = np.int64(0)
    for row in range(ptr.size - 1):
        count = np.int64(0)
        for at in range(ptr[row], ptr[row + 1]):
            count += above[at] != LISTED
        most = max(most, count)
    return most


@helper
def list_missing(first, last, depth, tree, labels, above, limits, paths):
    """List what is missing of a document's part of the pool, with the paths.

    Returns how many, and the highest level of a node whose score is known.
    """
    node_of, parent_of, first_leaf = tree
    count = np.int64(0)
    for at in range(first, last):
        if above[at] != LISTED:
            paths.keys[count] = ((first_leaf + node_of[labels[at]]) << NODE) + (at - first)
            count += 1
    sort_labels(paths.keys, count)
    highest = depth
    for number in range(count):
        node, at = paths.keys[number] >> NODE, first + (paths.keys[number] & PLACE)
        level = depth
        while level > 0:
            level -= 1
            paths.nodes[number * depth + level] = node
            node = parent_of[node]
            if node == above[at]:
                break
        paths.begins[number] = level
        highest = min(highest, level)
        paths.scores[number] = limits[at] if above[at] >= 0 else np.float32(0.0)
    return count, highest


@helper
def list_open(count, level, depth, parent_of, paths, beam):
    """Put the nodes of a level that lead to missing labels into the beam; returns how many."""
    found = np.int64(0)
    for number in range(count):
        if paths.begins[number] <= level:
            node = parent_of[paths.nodes[number * depth + level]]
            if found == 0 or beam.nodes[found - 1] != node:
                beam.nodes[found], beam.scores[found] = node, paths.scores[number]
                found += 1
            paths.entries[number] = found - 1
    return found


@helper
def narrow(count, level, depth, child_ptr, paths, beam):
    """Limit the open clusters to the children on the paths: full vectors begin at every 16th child."""
    before = np.int64(-1)
    for number in range(count):
        if paths.begins[number] <= level:
            entry = paths.entries[number]
            child = paths.nodes[number * depth + level] - child_ptr[beam.clusters[entry]]
            if entry != before:
                beam.lows[entry] = child // WIDTH * WIDTH
            beam.counts[entry] = child + 1
            before = entry


@helper
def score_open(row, level, found, start, size, documents, weights, transforms, stride, beam):
    """Score the children of the clusters that are open."""
    kinds, powers, combines = transforms
    hits = find_weights(
        documents.data,
        start,
        beam.places[:size],
        beam.ends[:size],
        beam.bases[:size],
        beam.clusters[:found],
        beam.beam_of,
        weights.level_ptr[level + 1],
        weights.rows,
        beam.hits,
        beam.hit_x,
    )
    add_weights(np.int64(hits), beam, stride, weights)
    for at in range(found):
        cluster, low, high, target = beam.clusters[at], beam.lows[at], beam.counts[at], at * stride
        first, last = weights.child_ptr[cluster], weights.child_ptr[cluster + 1]
        beam.beam_of[cluster] = -1
        if documents.dense.shape[1]:
            score_some_dense(
                documents.dense, row, first, last - first, low, high, weights.dense, beam.raw, target
            )
        above = beam.scores[at] if combines[level] == ADD else np.float32(0.0)
        transform_all(beam.raw, target + low, high - low, above, kinds[level], powers[level])


@kernel(
    void(
        *hybrid,
        i8,
        i8,
        *weight_types,
        i8,
        i8,
        const(i8),
        const(i8),
        const(i8),
        const(i8),
        const(i8),
        i8,
        i8,
        const(i8),
        const(i8),
        array(i8),
        array(f4),
        array(u1),
    ),
    use=PREDICTION,
)
def score_along_paths(
    indptr,
    indices,
    data,
    dense,
    first_row,
    last_row,
    starts,
    rows,
    cells,
    form,
    dense_weights,
    biases,
    child_ptr,
    level_ptr,
    depth,
    largest,
    kinds,
    powers,
    combines,
    node_of,
    parent_of,
    first_leaf,
    until,
    ptr,
    labels,
    above,
    limits,
    cancel,
):
    """Replace the limits of a pool's labels that the tree does not list.

    With `until` the depth of the tree they become the scores, else those of the nodes above the labels
    on level `until`. The pool is that of documents `first_row` to `last_row`; see `look_up` for `above`
    and `limits`.
    """
    most = most_missing(ptr, above)
    if most == 0:
        return
    clusters = np.int64(0)
    for level in range(depth):
        clusters = max(clusters, level_ptr[level + 1] - level_ptr[level])
    width, stride = min(most, clusters), (largest + WIDTH - 1) // WIDTH * WIDTH
    longest = longest_row(indptr, first_row, last_row)
    beam = new_beam(width, width, stride, child_ptr.size - 1, longest)
    documents = DocumentRows(indptr, indices, data, dense)
    weights = SearchWeights(starts, rows, cells, form, dense_weights, biases, child_ptr, level_ptr)
    tree, transforms = (node_of, parent_of, first_leaf), (kinds, powers, combines)
    paths = Paths(
        empty(most, np.int64),
        empty(most * depth, np.int64),
        empty(most, np.int64),
        empty(most, np.int64),
        empty(most, np.float32),
    )
    for at_row in range(last_row - first_row):
        if cancel[0]:
            return
        first, row = ptr[at_row], first_row + at_row
        count, highest = list_missing(first, ptr[at_row + 1], depth, tree, labels, above, limits, paths)
        if count == 0 or highest >= until:
            continue
        start, size = start_row(row, documents, weights, beam)
        for level in range(highest, until):
            found = list_open(count, level, depth, parent_of, paths, beam)
            if found == 0:
                continue
            open_clusters(beam, found, stride, biases, child_ptr)
            narrow(count, level, depth, child_ptr, paths, beam)
            score_open(row, level, found, start, size, documents, weights, transforms, stride, beam)
            for number in range(count):
                if paths.begins[number] <= level:
                    entry = paths.entries[number]
                    child = paths.nodes[number * depth + level] - child_ptr[beam.clusters[entry]]
                    paths.scores[number] = beam.raw[entry * stride + child]
        for number in range(count):
            if paths.begins[number] < until:
                at = first + (paths.keys[number] & PLACE)
                node = paths.nodes[number * depth + until - 1]
                limits[at], above[at] = paths.scores[number], LISTED if until == depth else node
