"""Training on the sample: how fast the kernels are on this machine and on these documents."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from treetop.features.hybrid import Features
from treetop.features.words.views import View
from treetop.ranking.ranker import Ranker
from treetop.runtime import Runtime
from treetop.runtime.progress import Reporter
from treetop.settings import auto
from treetop.settings.schema import LinearSettings
from treetop.training.advice.counting import LevelWork, spread_of, work_in_tree
from treetop.training.advice.sample import Sample
from treetop.training.forest import train_forests

# Where there is no tree, rankers of so many labels are enough to measure the solver.
LABELS_WITHOUT_TREE = 64
# Passes of the solver on the sample: enough under the default tolerance. Settings that ask for many
# more take longer than estimated.
MOST_PASSES = 20
# The first call of a kernel reads its machine code: so few documents are trained on beforehand.
FEW_DOCUMENTS = 50


class CpuClock(Reporter):
    """Measures the processor time of each step: a busy machine makes the steps no longer."""

    def __init__(self) -> None:
        self.seconds: list[tuple[str, float]] = []
        self._name, self._since = "", 0.0

    def step(self, name: str, total: int | None = None) -> Callable[[], object]:
        """Start a step, which ends the previous one."""
        self.close()
        self._name, self._since = name, time.process_time()
        return super().step(name, total)

    def close(self) -> None:
        """End the last step."""
        if self._name:
            self.seconds.append((self._name, time.process_time() - self._since))
        self._name = ""

    def of(self, *parts: str) -> float:
        """Seconds of the steps whose names contain all these parts."""
        return sum(seconds for name, seconds in self.seconds if all(part in name for part in parts))


class TreeFigures(NamedTuple):
    """What one tree of the sample is like."""

    values: float  # non-zeros per document that its rankers read
    spread: float  # see `expected_work`
    rows: float  # bytes of rows of weights per value of a positive document
    cells: float  # the same of cells


class Rates(NamedTuple):
    """Seconds of one processor."""

    upper: float  # per visit, on all levels but that of the labels
    labels: float  # per visit on the level of the labels
    tree: float  # per value that is summed up or clustered


class ForestFigures(NamedTuple):
    """What training on the sample took."""

    trees: list[TreeFigures]
    rates: Rates


def try_forest(
    sample: Sample, Y: sp.csr_matrix, views: Sequence[View], settings: LinearSettings, threads: int
) -> ForestFigures:
    """Train each tree on the sample; `Y` has all labels, and `settings` are resolved for it."""
    own, settings = labels_to_try(Y, sample.rows, settings)
    settings = replace(settings, passes=min(settings.passes, MOST_PASSES))
    few = np.arange(min(FEW_DOCUMENTS, own.shape[0]))
    timed_forest(sample.X[few], own[few], views, settings, threads)
    rankers, clock = timed_forest(sample.X, own, views, settings, threads)
    seen: list[np.ndarray | None] = [view.seen for view in views]
    seen = seen or [None] * len(rankers)
    trees = [
        figures_of(ranker, sample.X, own, columns)
        for ranker, columns in zip(rankers, seen, strict=False)
    ]
    return ForestFigures(trees, rates_of(clock, rankers, trees, own))


def timed_forest(
    X: Features, Y: sp.csr_matrix, views: Sequence[View], settings: LinearSettings, threads: int
) -> tuple[list[Ranker], CpuClock]:
    """Train trees and their rankers, and measure each step."""
    clock = CpuClock()
    # Trees that are trained in parallel report no steps: so few threads train them in turn.
    runtime = Runtime(threads=min(threads, 2), reporter=clock)
    rankers = train_forests(X, Y, None, settings, runtime, views=views).rankers
    clock.close()
    return rankers, clock


def labels_to_try(
    Y: sp.csr_matrix, rows: np.ndarray, settings: LinearSettings
) -> tuple[sp.csr_matrix, LinearSettings]:
    """The labels of the sampled documents, and settings under which they are trained as all are.

    A tree remains a tree although the sample has fewer labels. Without a tree, a few labels are enough;
    the weights of the positives are those they have among all labels.
    """
    own = sp.csr_matrix(Y[rows], dtype=np.float32)
    present = np.unique(own.indices)
    if not auto.is_flat(settings, Y.shape[1]):
        return sp.csr_matrix(own[:, present]), replace(settings, tree="auto", flat_labels=0)
    if settings.cost_sensitive:
        sizes = np.diff(own.indptr)
        own.data /= np.repeat(sizes, sizes).astype(np.float32)
    own_counts = np.bincount(own.indices, minlength=Y.shape[1])[present]
    alike = labels_of_counts(own_counts, np.bincount(Y.indices, minlength=Y.shape[1]))
    kept = present[alike]
    return sp.csr_matrix(own[:, np.sort(kept)]), replace(settings, tree="flat", cost_sensitive=False)


def labels_of_counts(own: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Choose labels of the sample that have about as many documents there as labels have in all.

    The solver takes longer for frequent labels. `own` and `counts` are documents per label, in the
    sample and in all. Returns positions in `own`, without duplicates.
    """
    order = np.argsort(own, kind="stable")
    number = min(LABELS_WITHOUT_TREE, own.size)
    typical = np.quantile(counts[counts > 0], (np.arange(number) + 0.5) / number)
    places = np.minimum(np.searchsorted(own[order], typical), own.size - number + np.arange(number))
    places = np.maximum.accumulate(places - np.arange(number)) + np.arange(number)
    return np.asarray(order[places])


def figures_of(ranker: Ranker, X: Features, Y: sp.csr_matrix, seen: np.ndarray | None) -> TreeFigures:
    """Count what a tree of the sample read and learned; `seen` are the columns of its view."""
    matrix = X.sparse
    read = matrix.nnz if seen is None else int(np.count_nonzero(seen[matrix.indices]))
    values = read / X.rows + X.widths[1]
    positives = max(1.0, Y.nnz * values)
    weights = ranker.weights
    dense = weights.dense.nbytes
    return TreeFigures(
        values,
        spread_of(ranker.tree, Y),
        weights.rows.nbytes / positives,
        (weights.cells.nbytes + dense) / positives,
    )


def rates_of(
    clock: CpuClock, rankers: Sequence[Ranker], trees: Sequence[TreeFigures], Y: sp.csr_matrix
) -> Rates:
    """Divide the seconds of all trees by their counted work."""
    upper = labels = clustered = 0.0
    of_labels = 0.0
    for ranker, tree in zip(rankers, trees, strict=True):
        work = work_in_tree(ranker.tree, Y)
        *above, last = [level.visits(tree.values) for level in work]
        upper, labels = upper + sum(above), labels + last
        clustered += clustered_values(Y, work, tree.values)
    for depth in {ranker.tree.depth for ranker in rankers}:
        of_labels += clock.of("rankers", f"level {depth} of {depth}" if depth > 1 else "")
    above_labels = clock.of("rankers") - of_labels
    return Rates(
        above_labels / max(1.0, upper),
        of_labels / max(1.0, labels),
        (clock.of("label features") + clock.of("label tree")) / max(1.0, clustered),
    )


def clustered_values(Y: sp.csr_matrix, work: Sequence[LevelWork], values: float) -> float:
    """Values that PIFA sums up, and again for each bisection of the tree."""
    return float(Y.nnz * values * (1 + np.log2(max(2, work[-1].clusters))))
