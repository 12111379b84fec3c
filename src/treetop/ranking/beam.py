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


def beam_search(
    weights: Weights,
    X: Features,
    depth: int,
    beam: int,
    top: int,
    score: ScoreKind,
    threads: int,
    allowed: np.ndarray = NO_MASK,
    candidates: tuple[np.ndarray, np.ndarray] = (NO_NODES, NO_NODES),
    start: Start = ROOT,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes of level `depth` (numbered through all levels), scores and how many, best first.

    `allowed`: uint8 by node, which may be entered. `candidates`: (pointers, nodes of level `depth`)
    that each document is restricted to; all of them are then scored, whatever the beam. `start`: nodes
    of a level to begin at instead of the root.
    """
    rows = X.rows
    if candidates[0].size:
        beam = max(beam, int(np.diff(candidates[0]).max(initial=1)))
    if start.ptr.size:
        beam = max(beam, int(np.diff(start.ptr).max(initial=1)))
    nodes = np.zeros((rows, top), np.int64)
    scores = np.zeros((rows, top), np.float32)
    counts = np.zeros(rows, np.int64)

    def work(task: tuple[int, int], cancel: np.ndarray) -> None:
        first, last = task
        kernel.search(
            *X.arrays,
            first,
            last,
            *weights.for_search,
            start.level,
            depth,
            beam,
            top,
            weights.largest,
            score.kind,
            score.power,
            score.combine,
            allowed,
            weights.parent_of,
            *candidates,
            *start[1:],
            nodes[first:last],
            scores[first:last],
            counts[first:last],
            cancel,
        )

    if rows == 1:
        work((0, 1), np.zeros(1, np.uint8))
    else:
        parallel.run(work, parallel.ranges(rows, -(-rows // ROWS_A_TASK)), threads)
    return nodes, score.final(scores), counts


def to_csr(nodes: np.ndarray, scores: np.ndarray, counts: np.ndarray, columns: int) -> sp.csr_matrix:
    """Search results as a matrix, the best first in each row."""
    shape = (nodes.shape[0], columns)
    if nodes.shape[0] == 1:  # no masks for a single query, which takes only microseconds itself
        count = int(counts[0])
        return raw_csr(scores[0, :count], nodes[0, :count], np.array([0, count]), shape)
    found = np.arange(nodes.shape[1]) < counts[:, None]
    return raw_csr(scores[found], nodes[found], np.append(0, np.cumsum(counts)), shape)
