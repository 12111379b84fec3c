"""Beam search for the best labels, or nodes of a level, of each document."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from treetop.features.hybrid import Features, raw_csr
from treetop.kernels import search as kernel
from treetop.ranking.scores import ScoreKind
from treetop.ranking.weights import Weights
from treetop.runtime import parallel

ROWS_PER_TASK = 256
NO_MASK = np.empty(0, np.uint8)
NO_NODES = np.empty(0, np.int64)
NO_SCORES = np.empty(0, np.float32)


class Start(NamedTuple):
    """Nodes of a level that a search starts from, by document, with their scores so far."""

    level: int = 0
    ptr: np.ndarray = NO_NODES
    nodes: np.ndarray = NO_NODES
    scores: np.ndarray = NO_SCORES


ROOT = Start()


class SearchPlan(NamedTuple):
    """Target and limits of a search."""

    depth: int  # level of the nodes to return
    beam: int  # nodes kept at each level above
    top: int  # nodes to return per document
    score: ScoreKind
    allowed: np.ndarray = NO_MASK  # uint8 by node: whether it may be visited; empty: all may
    # Pointers by document, and the nodes of level `depth` to which its search is restricted: they are
    # all scored, whatever the beam. Empty: no restriction.
    candidates: tuple[np.ndarray, np.ndarray] = (NO_NODES, NO_NODES)
    start: Start = ROOT


class Nodes(NamedTuple):
    """Search results: nodes, numbered across all levels, best first in each row."""

    nodes: np.ndarray  # int64, documents x top
    scores: np.ndarray  # float32
    counts: np.ndarray  # int64, number of results in each row


def beam_search(weights: Weights, X: Features, plan: SearchPlan, threads: int) -> Nodes:
    """Find the best nodes of level `plan.depth` for each document."""
    rows, top = X.rows, plan.top
    for pointers in (plan.candidates[0], plan.start.ptr):
        if pointers.size:
            plan = plan._replace(beam=max(plan.beam, int(np.diff(pointers).max(initial=1))))
    nodes, scores = np.zeros((rows, top), np.int64), np.zeros((rows, top), np.float32)
    counts = np.zeros(rows, np.int64)
    start, score = plan.start, plan.score

    def search(span: tuple[int, int], cancel: np.ndarray) -> None:
        first, last = span
        kernel.search(
            *X.arrays,
            first,
            last,
            *weights.for_search,
            start.level,
            plan.depth,
            plan.beam,
            top,
            weights.largest,
            score.kind,
            score.power,
            score.combine,
            plan.allowed,
            weights.parent_of,
            *plan.candidates,
            start.ptr,
            start.nodes,
            start.scores,
            nodes[first:last],
            scores[first:last],
            counts[first:last],
            cancel,
        )

    if rows == 1:
        search((0, 1), np.zeros(1, np.uint8))
    else:
        parallel.run(search, parallel.ranges(rows, -(-rows // ROWS_PER_TASK)), threads)
    return Nodes(nodes, score.final(scores), counts)


def to_csr(results: Nodes, columns: int) -> sp.csr_matrix:
    """Convert search results to a CSR matrix with the best first in each row."""
    nodes, scores, counts = results
    shape = (nodes.shape[0], columns)
    if nodes.shape[0] == 1:  # a mask would take longer than the search itself
        count = int(counts[0])
        return raw_csr(scores[0, :count], nodes[0, :count], np.array([0, count]), shape)
    filled = np.arange(nodes.shape[1]) < counts[:, None]
    return raw_csr(scores[filled], nodes[filled], np.append(0, np.cumsum(counts)), shape)
