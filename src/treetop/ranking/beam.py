"""Beam search: the best labels (or nodes of a level) of each document."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from treetop.features.hybrid import Features, raw_csr
from treetop.kernels import search as kernel
from treetop.ranking.scores import ScoreKind
from treetop.ranking.weights import Weights
from treetop.runtime import parallel

ROWS_A_TASK = 256
NO_MASK = np.empty(0, np.uint8)
NO_NODES = np.empty(0, np.int64)
NO_SCORES = np.empty(0, np.float32)


class Start(NamedTuple):
    """Where a search begins: nodes of a level, and what they are worth so far."""

    level: int = 0
    ptr: np.ndarray = NO_NODES
    nodes: np.ndarray = NO_NODES
    scores: np.ndarray = NO_SCORES


ROOT = Start()


class SearchPlan(NamedTuple):
    """What a search is for, and how far it looks."""

    depth: int  # level of the nodes to be found
    beam: int  # nodes followed at each level above
    top: int  # nodes to be found
    score: ScoreKind
    allowed: np.ndarray = NO_MASK  # uint8 by node: which may be entered; empty: all
    # Pointers, and the nodes of level `depth` that each document is restricted to: all of them are
    # scored, whatever the beam. Empty: no such restriction.
    candidates: tuple[np.ndarray, np.ndarray] = (NO_NODES, NO_NODES)
    start: Start = ROOT


class Nodes(NamedTuple):
    """Nodes of a level, numbered through all levels, best first in each row."""

    nodes: np.ndarray  # int64, documents x top
    scores: np.ndarray  # float32
    counts: np.ndarray  # int64, how many of a row are filled


def beam_search(weights: Weights, X: Features, plan: SearchPlan, threads: int) -> Nodes:
    """The best nodes of level `plan.depth` for each document."""
    rows, top = X.rows, plan.top
    for pointers in (plan.candidates[0], plan.start.ptr):
        if pointers.size:
            plan = plan._replace(beam=max(plan.beam, int(np.diff(pointers).max(initial=1))))
    nodes, scores = np.zeros((rows, top), np.int64), np.zeros((rows, top), np.float32)
    best = Nodes(nodes, scores, np.zeros(rows, np.int64))

    def work(task: tuple[int, int], cancel: np.ndarray) -> None:
        search_rows(weights, X, plan, task, best, cancel)

    if rows == 1:
        work((0, 1), np.zeros(1, np.uint8))
    else:
        parallel.run(work, parallel.ranges(rows, -(-rows // ROWS_A_TASK)), threads)
    return Nodes(nodes, plan.score.final(scores), best.counts)


def search_rows(
    weights: Weights,
    X: Features,
    plan: SearchPlan,
    rows: tuple[int, int],
    out: Nodes,
    cancel: np.ndarray,
) -> None:
    """Search for the documents from ``rows[0]`` to ``rows[1]``, whose part of `out` is filled."""
    first, last = rows
    kernel.search(
        *X.arrays,
        first,
        last,
        *weights.for_search,
        plan.start.level,
        plan.depth,
        plan.beam,
        plan.top,
        weights.largest,
        plan.score.kind,
        plan.score.power,
        plan.score.combine,
        plan.allowed,
        weights.parent_of,
        *plan.candidates,
        plan.start.ptr,
        plan.start.nodes,
        plan.start.scores,
        out.nodes[first:last],
        out.scores[first:last],
        out.counts[first:last],
        cancel,
    )


def to_csr(found: Nodes, columns: int) -> sp.csr_matrix:
    """Search results as a matrix, the best first in each row."""
    nodes, scores, counts = found
    shape = (nodes.shape[0], columns)
    if nodes.shape[0] == 1:  # no masks for a single query, which takes only microseconds itself
        count = int(counts[0])
        return raw_csr(scores[0, :count], nodes[0, :count], np.array([0, count]), shape)
    filled = np.arange(nodes.shape[1]) < counts[:, None]
    return raw_csr(scores[filled], nodes[filled], np.append(0, np.cumsum(counts)), shape)
