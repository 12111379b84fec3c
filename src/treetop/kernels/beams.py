"""The nodes that a search keeps: the best so far, in which order, and which may be reached."""

from typing import NamedTuple

import numpy as np

from treetop.kernels import helper, maker
from treetop.kernels.arrays import empty, full


class Beam(NamedTuple):
    """Nodes reached, the scores of their children, and what the document's features hit.

    The scores of a cluster's children before `lows`, a multiple of 16, or from `counts` on, are not
    complete: they are not wanted.
    """

    nodes: np.ndarray
    scores: np.ndarray
    best_nodes: np.ndarray
    best_scores: np.ndarray
    clusters: np.ndarray
    lows: np.ndarray
    counts: np.ndarray
    raw: np.ndarray
    beam_of: np.ndarray
    places: np.ndarray
    ends: np.ndarray
    bases: np.ndarray
    hits: np.ndarray
    hit_x: np.ndarray


@maker
def new_beam(width, widest, stride, clusters, longest):
    """Make room for `widest` nodes, of which `width` have children that take `stride` each.

    There are so many `clusters` in all, and `longest` features in a document.
    """
    room = longest * width + 1
    return Beam(
        empty(widest, np.int64),
        empty(widest, np.float32),
        empty(widest, np.int64),
        empty(widest, np.float32),
        empty(widest, np.int64),
        empty(widest, np.int64),
        empty(widest, np.int64),
        full(width * stride, 0.0, np.float32),
        full(clusters, -1, np.int32),
        empty(longest, np.uint64),
        empty(longest, np.uint64),
        empty(longest, np.int64),
        empty(room, np.int64),
        empty(room, np.float32),
    )


@helper
def start_beam(beam, at_row, start_ptr, start_nodes, start_scores):
    """Put a document's first nodes into the beam: the root if none are given. Returns how many."""
    beam.nodes[0], beam.scores[0] = -1, 0.0
    if not start_ptr.size:
        return np.int64(1)
    first = start_ptr[at_row]
    found = start_ptr[at_row + 1] - first
    for at in range(found):
        beam.nodes[at] = start_nodes[first + at]
        beam.scores[at] = start_scores[first + at]
    return found


@helper
def open_clusters(beam, found, stride, biases, child_ptr):
    """List the clusters below the beam's nodes, and begin the scores of their children."""
    for at in range(found):
        cluster = beam.nodes[at] + 1
        beam.clusters[at] = cluster
        beam.lows[at] = 0
        beam.counts[at] = child_ptr[cluster + 1] - child_ptr[cluster]
        beam.beam_of[cluster] = at
        for child in range(beam.counts[at]):
            beam.raw[at * stride + child] = biases[child_ptr[cluster] + child]


@helper
def keep_best(node, score, best_nodes, best_scores, count, width):
    """Insert into a list of at most `width`, best first, ties to the lower node; new length."""
    if count == width:
        if width == 0 or score <= best_scores[count - 1]:
            return count
        count -= 1
    place = count
    while place > 0 and best_scores[place - 1] < score:
        best_scores[place] = best_scores[place - 1]
        best_nodes[place] = best_nodes[place - 1]
        place -= 1
    best_scores[place] = score
    best_nodes[place] = node
    return count + 1


@helper
def sort_beam(nodes, scores, count):
    """Ascending by node: insertion sort."""
    for at in range(1, count):
        node, score, place = nodes[at], scores[at], at
        while place > 0 and nodes[place - 1] > node:
            nodes[place], scores[place] = nodes[place - 1], scores[place - 1]
            place -= 1
        nodes[place], scores[place] = node, score


@helper
def mark_candidates(at_row, candidate_ptr, candidates, parent_of, visited, mark):
    """Mark a document's candidate nodes and all nodes above them. Returns how many candidates."""
    first, last = candidate_ptr[at_row], candidate_ptr[at_row + 1]
    for at in range(first, last):
        node = candidates[at]
        while node >= 0 and visited[node] != mark:
            visited[node] = mark
            node = parent_of[node]
    return last - first
