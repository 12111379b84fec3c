"""Memory of the trees and their rankers, estimated from counts of the data before the work."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from treetop.errors import TreetopError
from treetop.features.hybrid import Features
from treetop.labels.pifa import VALUES_PER_TASK
from treetop.labels.tree import LABELS_PER_WAVE
from treetop.ranking.chunks import PART
from treetop.ranking.solver import BLOCK_FEATURES
from treetop.runtime import Runtime
from treetop.runtime.memory import memory_in_use, peak_memory, size_text
from treetop.settings.schema import LinearSettings

# Z with more sparse values than this (268 MB) is computed in waves; the upper levels of the tree are
# then built with so many features per label.
MOST_VALUES, UPPER_FEATURES = 1 << 25, 64
# Bytes of a value of a sparse matrix, and of a weight while a cluster is trained.
VALUE, WEIGHT = 8, 4
LANES = 16


class Needs(NamedTuple):
    """Bytes that the stages take beyond the features and labels of the documents."""

    tree: int
    rankers: int
    layout: int


class TreeShape(NamedTuple):
    """What the needs depend on besides the data."""

    leaf: int
    tree_features: int | None
    builds_tree: bool


def needs_of(X: Features, Y: sp.csr_matrix, shape: TreeShape, threads: int) -> Needs:
    """Estimate what a tree and its rankers take."""
    of_tree = 3 * VALUE * Y.nnz + 2 * threads * VALUE * VALUES_PER_TASK
    of_tree += VALUE * values_in_tree(X, Y, shape.tree_features, threads)
    of_tree += VALUE * Y.shape[1] * X.widths[1]
    blocks = -(-shape.leaf // LANES) + 1
    widest = max(BLOCK_FEATURES + X.widths[0], blocks * X.widths[0]) + blocks * X.widths[1]
    of_rankers = 5 * VALUE * Y.nnz + WEIGHT * X.sparse.nnz + 2 * threads * WEIGHT * LANES * widest
    of_layout = 2 * threads * PART + 2 * VALUE * (X.widths[0] + Y.shape[1])
    return Needs(of_tree if shape.builds_tree else 0, of_rankers, of_layout)


def values_in_tree(X: Features, Y: sp.csr_matrix, largest: int | None, threads: int) -> int:
    """The most values of Z that are in memory at once."""
    sizes = np.repeat(np.diff(X.sparse.indptr), np.diff(Y.indptr))
    sums = np.bincount(Y.indices, sizes, minlength=Y.shape[1])
    room = np.minimum(sums, X.widths[0] if largest is None else largest)
    if room.sum() <= MOST_VALUES:
        return int(room.sum())
    share = min(1.0, LABELS_PER_WAVE / Y.shape[1])
    return int(np.minimum(room, UPPER_FEATURES).sum() + 2 * threads * share * room.sum())


def within_memory(
    X: Features, Y: sp.csr_matrix, settings: LinearSettings, runtime: Runtime, builds_tree: bool
) -> Runtime:
    """The runtime with as many of its threads as fit into its memory; raise if not even one does."""
    limit, loaded = runtime.memory_bytes, memory_in_use()
    if limit is None:
        return runtime
    shape = TreeShape(settings.leaf, settings.tree_features, builds_tree)
    least = loaded + max(needs_of(X, Y, shape, 1))
    if least > limit:
        raise TreetopError(
            f"training takes about {size_text(least)}, {size_text(loaded)} of it for the documents, "
            f"but memory is {size_text(limit)}: {advice(X, Y, shape, limit - loaded)}"
        )
    threads = runtime.thread_count
    while threads > 1 and loaded + max(needs_of(X, Y, shape, threads)) > limit:
        threads -= 1
    if threads < runtime.thread_count:
        runtime.reporter.note(f"{threads} of {runtime.thread_count} threads are used to save memory")
    return runtime.changed(threads=threads)


def advice(X: Features, Y: sp.csr_matrix, shape: TreeShape, room: int) -> str:
    """Which setting fits into so many bytes."""
    for few in (64, 16):
        if max(needs_of(X, Y, shape._replace(tree_features=few), 1)) <= room:
            return f"set tree_features={few}, or raise memory"
    return "raise memory, or train on fewer documents or features (max_features, ngrams=word:1)"


def report_peak(runtime: Runtime) -> None:
    """Say how much memory was taken, if it was limited."""
    if runtime.memory_bytes is not None and (peak := peak_memory()):
        limit = size_text(runtime.memory_bytes)
        runtime.reporter.note(f"memory: {size_text(peak)} at most, of {limit}")
