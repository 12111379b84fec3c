"""The nodes that a search keeps: the best so far, in which order, and which may be reached."""

from typing import NamedTuple

import numpy as np

from treetop.kernels import helper


class Beam(NamedTuple):
    """Nodes reached, the scores of their children, and what the document's features hit."""

    nodes: np.ndarray
    scores: np.ndarray
    best_nodes: np.ndarray
    best_scores: np.ndarray
    clusters: np.ndarray
    counts: np.ndarray
    raw: np.ndarray
    beam_of: np.ndarray
    places: np.ndarray
    ends: np.ndarray
    hit_entry: np.ndarray
    hit_at: np.ndarray
    hit_x: np.ndarray


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
def mark_candidates(candidates, start, end, parent_of, visited, mark):
    """Mark a document's candidate nodes and all nodes above them."""
    for at in range(start, end):
        node = candidates[at]
        while node >= 0 and visited[node] != mark:
            visited[node] = mark
            node = parent_of[node]
