"""Beam search for the best labels, or nodes of a level, of each document."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from treetop.features.hybrid import Features, raw_csr
from treetop.kernels import search as kernel
from treetop.ranking.scores import PathScore
from treetop.ranking.weights import Weights
from treetop.runtime import parallel
from treetop.runtime.anywhere import on_cluster, parallel_tasks, run_anywhere

ROWS_PER_TASK = 256
# On a cluster, at most so many: the results of a task are a message.
MOST_ROWS_PER_REMOTE_TASK = 4096
REMOTE_TASKS_PER_CORE = 4
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
    beams: np.ndarray  # int64, nodes kept at levels 1 … depth; the last is not used
    top: int  # nodes to return per document
    score: PathScore
    allowed: np.ndarray = NO_MASK  # uint8 by node: whether it may be visited; empty: all may
    # Pointers by document, and the nodes of level `depth` to which its search is restricted: they are
    # all scored, whatever the beam. Empty: no restriction.
    candidates: tuple[np.ndarray, np.ndarray] = (NO_NODES, NO_NODES)
    start: Start = ROOT
    # Whether to return all nodes of level `depth` below the final beam, at most `top`, in any order.
    whole: bool = False

    def of_rows(self, first: int, last: int) -> SearchPlan:
        """The plan of some of the documents."""
        pointers, nodes = self.candidates
        start = self.start
        if start.ptr.size:
            start = start._replace(ptr=start.ptr[first : last + 1])
        if pointers.size:
            pointers = pointers[first : last + 1]
        return self._replace(candidates=(pointers, nodes), start=start)

    def reaching_all(self) -> SearchPlan:
        """The plan with a beam that holds all candidates and all nodes to start from."""
        beams = self.beams
        for pointers in (self.candidates[0], self.start.ptr):
            if pointers.size:
                beams = np.maximum(beams, int(np.diff(pointers).max(initial=1)))
        return self._replace(beams=beams)


class Nodes(NamedTuple):
    """Search results: nodes, numbered across all levels, or labels; best first in each row."""

    nodes: np.ndarray  # int64, documents x top
    scores: np.ndarray  # float32
    counts: np.ndarray  # int64, number of results in each row


class Passed(NamedTuple):
    """All nodes above the level searched for that a search scored, ascending in each row."""

    nodes: np.ndarray  # int64, documents x room
    scores: np.ndarray  # float32
    counts: np.ndarray  # int64


def beam_search(weights: Weights, X: Features, plan: SearchPlan, threads: int) -> Nodes:
    """Find the best nodes of level `plan.depth` for each document."""
    rows, plan = X.rows, plan.reaching_all()
    found = no_results(rows, plan.top)

    def search(span: tuple[int, int], cancel: np.ndarray) -> None:
        first, last = span
        results = Nodes(*(part[first:last] for part in found))
        search_span(weights, X, plan.of_rows(first, last), span, results, cancel)

    if rows == 1:
        search((0, 1), np.zeros(1, np.uint8))
    else:
        parallel.run(search, parallel.ranges(rows, -(-rows // ROWS_PER_TASK)), threads)
    return found._replace(scores=plan.score.final(found.scores))


def search_anywhere(weights: Weights, X: Features, plan: SearchPlan, threads: int) -> Nodes:
    """Like `beam_search`, but on the cluster if one is in use, to which `weights` are sent."""
    if not on_cluster():
        return beam_search(weights, X, plan, threads)
    rows, plan = X.rows, plan.reaching_all()
    found = no_results(rows, plan.top)

    def search(span: tuple[int, int], cancel: np.ndarray) -> Nodes:
        own = no_results(span[1] - span[0], plan.top)
        search_span(weights, X, plan.of_rows(*span), span, own, cancel)
        return own

    def keep(span: tuple[int, int], own: Nodes) -> None:
        for whole, part in zip(found, own, strict=True):
            whole[slice(*span)] = part

    count = REMOTE_TASKS_PER_CORE * parallel_tasks(threads)
    spans = parallel.ranges(rows, max(count, -(-rows // MOST_ROWS_PER_REMOTE_TASK)))
    run_anywhere(search, spans, threads, None, keep, stage="beam search")
    return found._replace(scores=plan.score.final(found.scores))


def no_results(rows: int, top: int) -> Nodes:
    """Results of a search that has not found anything yet."""
    nodes, scores = np.zeros((rows, top), np.int64), np.zeros((rows, top), np.float32)
    return Nodes(nodes, scores, np.zeros(rows, np.int64))


def search_span(
    weights: Weights,
    X: Features,
    plan: SearchPlan,
    span: tuple[int, int],
    found: Nodes,
    cancel: np.ndarray,
    bounds: np.ndarray | None = None,
    passed: Passed | None = None,
) -> None:
    """Search for the documents from ``span[0]`` to ``span[1]``, whose `plan` it is.

    Fills `found`, with scores as the search adds them up, and what else is given: `bounds` (float32, by
    document), which no other node below a document's start exceeds, and `passed`.
    """
    rows = span[1] - span[0]
    bounds = np.empty(rows, np.float32) if bounds is None else bounds
    passed = Passed(*no_results(rows, 0)) if passed is None else passed
    score, start = plan.score, plan.start
    kernel.search(
        *X.arrays,
        *span,
        *weights.for_search,
        start.level,
        plan.depth,
        plan.beams,
        plan.top,
        plan.whole,
        weights.largest,
        score.kinds,
        score.powers,
        score.combines,
        plan.allowed,
        weights.parent_of,
        *plan.candidates,
        start.ptr,
        start.nodes,
        start.scores,
        *found,
        bounds,
        *passed,
        cancel,
    )


def to_csr(results: Nodes, columns: int) -> sp.csr_matrix:
    """Convert search results to a CSR matrix with the best first in each row."""
    nodes, scores, counts = results
    shape = (nodes.shape[0], columns)
    if nodes.shape[0] == 1:  # a mask would take longer than the search itself
        count = int(counts[0])
        return raw_csr(scores[0, :count], nodes[0, :count], np.array([0, count]), shape)
    filled = np.arange(nodes.shape[1]) < counts[:, None]
    return raw_csr(scores[filled], nodes[filled], np.append(0, np.cumsum(counts)), shape)
