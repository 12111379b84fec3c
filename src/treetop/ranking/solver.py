"""Solver for the linear rankers of one level: all children of a cluster are trained together."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple, Required, TypedDict, Unpack

import numpy as np
import scipy.sparse as sp

from treetop.features.hybrid import Features
from treetop.kernels import descent, losses
from treetop.kernels.lanes import WIDTHS, width_for
from treetop.labels.relevance import positive_weights
from treetop.ranking.pruning import largest_weights
from treetop.ranking.weights import ClusterWeights, merge_blocks
from treetop.runtime import parallel
from treetop.runtime.anywhere import parallel_tasks, run_anywhere
from treetop.runtime.progress import Reporter
from treetop.settings.parts import RankerSettings

LOSSES = {
    "squared-hinge": losses.SQUARED_HINGE,
    "hinge": losses.HINGE,
    "logistic": losses.LOGISTIC,
}

# Maximum size of a task in features times blocks of 16 labels: about 128 MB of weights.
BLOCK_FEATURES = 1 << 21
# The weights of a cluster, and those learned without the held-out documents, if there are any.
Solved = tuple[ClusterWeights, ...]


class Task(NamedTuple):
    """Consecutive children of one cluster, trained in blocks of `width`."""

    cluster: int
    width: int
    first_child: int
    last_child: int


def copies(rows: int, documents: int) -> bool:
    """Whether a cluster has so few documents that copying their rows into one block pays off."""
    return 2 * rows < documents


def block_width(children: int, rows: int, documents: int) -> int:
    """Return how many children are trained at once.

    A cluster of few children and most documents, such as the root's, would be a single block and use a
    single thread: narrower blocks let several threads share it.
    """
    width = width_for(children)
    if children <= width and not copies(rows, documents):
        width = max(WIDTHS[0], width // 2)
    return width


def costs(R: sp.csr_matrix, settings: RankerSettings) -> tuple[sp.csc_matrix, float]:
    """Return C·R̂ of the positives, CSC of shape (N, nodes), and C·α, that of every negative.

    The paper's objective Σ R̂ loss + λ‖w‖² (equation 9), divided by 2λ, is ½‖w‖² + Σ C R̂ loss with
    C = 1/(2λ). R̂ is R with rows that sum to 1 for positives, and α for negatives. Without
    cost-sensitive learning, the weight of a positive is its relevance.
    """
    C = 1.0 / (2.0 * float(settings.lambda_))
    normalized = settings.cost_sensitive and settings.relevance_norm == "l1"
    by_node = sp.csc_matrix(positive_weights(R, normalized) * C, dtype=np.float32)
    by_node.sort_indices()
    return by_node, C * float(settings.alpha)


def plan(
    rows: np.ndarray, child_ptr: np.ndarray, documents: int, features: int, threads: int
) -> list[Task]:
    """Divide the clusters into tasks of similar size, several per thread, largest first.

    A task with most documents holds weights for all features, so it gets only a few blocks.

    The division depends on the number of threads, but the weights do not: a block of children is never
    split, and blocks are independent of each other.
    """
    pairs = zip(np.diff(child_ptr).tolist(), rows.tolist(), strict=True)
    widths = np.array([block_width(children, count, documents) for children, count in pairs])
    blocks = -(-np.diff(child_ptr) // widths)
    work = rows * blocks
    share = max(1.0, float(work.sum()) / (4 * threads))
    tasks = []
    for cluster in np.argsort(-work, kind="stable").tolist():
        first, last = int(child_ptr[cluster]), int(child_ptr[cluster + 1])
        width = int(widths[cluster])
        pieces = int(np.ceil(work[cluster] / share))
        if copies(int(rows[cluster]), documents):
            pieces = min(pieces, 4)
        else:
            pieces = max(pieces, int(blocks[cluster]) * features // BLOCK_FEATURES)
        for start, end in parallel.ranges(int(blocks[cluster]), max(1, pieces)):
            tasks.append(Task(cluster, width, first + width * start, min(first + width * end, last)))
    return tasks


class SolverOptions(TypedDict, total=False):
    """Keywords of `solve_clusters`."""

    seed: Required[int]
    threads: Required[int]
    report: Required[Reporter]
    name: Required[str]
    document_weights: np.ndarray | None


class LevelProblem(NamedTuple):
    """The inputs that all clusters of a level share."""

    X: Features
    norms: np.ndarray  # float32, ‖x‖²
    document_weights: np.ndarray  # float32, factors of all costs of a document
    members: sp.csc_matrix  # documents of each cluster
    positives: sp.csc_matrix  # costs of the positives by node
    positive_ptr: np.ndarray  # int64, their pointers
    negative_cost: float
    settings: RankerSettings
    seed: int
    held: np.ndarray  # uint8, 1 for documents that are held out; empty if none are
    wanted: np.ndarray  # uint8, 1 for features of these; empty: those of all documents

    @property
    def models(self) -> int:
        """How many models are trained: a second one without the held-out documents."""
        return 2 if self.held.size else 1

    def most_weights(self, task: Task, rows: np.ndarray) -> int:
        """An upper limit of the weights of a task before pruning, with lanes that have no child."""
        columns = self.X.widths[0]
        if copies(rows.size, self.X.rows):
            pointers = self.X.sparse.indptr
            columns = min(columns, int((pointers[rows + 1] - pointers[rows]).sum()))
        blocks = -(-(task.last_child - task.first_child) // task.width)
        return self.models * blocks * task.width * (columns + self.X.widths[1] + 1)

    def solve(self, task: Task, scratch: Scratch, cancel: np.ndarray) -> Solved:
        """Train the children of the task."""
        start, end = self.members.indptr[task.cluster : task.cluster + 2]
        rows = self.members.indices[start:end].astype(np.int64)
        settings = self.settings
        room = scratch.room(self.most_weights(task, rows))
        columns = descent.train_cluster(
            task.width,
            *self.X.arrays,
            self.norms,
            self.document_weights,
            rows,
            copies(rows.size, self.X.rows),
            task.first_child,
            task.last_child,
            self.positive_ptr,
            self.positives.indices,
            self.positives.data,
            self.negative_cost,
            float(settings.bias or 0.0),
            LOSSES[settings.loss],
            settings.passes,
            settings.tolerance,
            self.seed,
            self.held,
            self.wanted,
            scratch.numbers,
            scratch.row_of,
            scratch.features,
            room,
            cancel,
        )
        children, inputs = task.last_child - task.first_child, columns + self.X.widths[1] + 1
        blocks = -(-children // task.width)
        shape = (self.models, blocks, inputs, task.width)
        both = room[: self.models * blocks * inputs * task.width].reshape(shape)
        features = scratch.features[:columns]
        return tuple(largest_weights(weights, features, children, settings) for weights in both)


class Scratch(threading.local):
    """Working memory of the kernel, allocated once per thread, and anew where it is sent."""

    def __init__(self, X: Features) -> None:
        self.X = X
        self.numbers = np.full(X.sparse.shape[1], -1, np.int32)
        self.row_of = np.zeros(X.rows, np.int32)
        self.features = np.empty(X.sparse.shape[1], np.int32)
        self._room = np.empty(0, np.float32)

    def room(self, size: int) -> np.ndarray:
        """Room for so many weights; numpy's, because its large arrays lie in huge pages."""
        if self._room.size < size:
            self._room = np.empty(size, np.float32)
        return self._room

    def __reduce__(self) -> tuple[type[Scratch], tuple[Features]]:
        return Scratch, (self.X,)


class Pieces:
    """The solved tasks of each cluster, until they are complete. Threads may add them in any order."""

    def __init__(self, tasks: list[Task]) -> None:
        self._missing = Counter(task.cluster for task in tasks)
        self._pieces: dict[int, list[tuple[int, Solved]]] = {}
        self._lock = threading.Lock()

    def completed(self, task: Task, weights: Solved) -> Solved | None:
        """Add the weights of a task; return those of its cluster if this was the last one."""
        with self._lock:
            pieces = self._pieces.setdefault(task.cluster, [])
            pieces.append((task.first_child, weights))
            self._missing[task.cluster] -= 1
            if self._missing[task.cluster]:
                return None
            del self._pieces[task.cluster]
        ordered = [piece for _, piece in sorted(pieces, key=lambda piece: piece[0])]
        return tuple(merge_blocks(list(parts)) for parts in zip(*ordered, strict=True))


def features_of_held(X: Features, held: np.ndarray, settings: RankerSettings) -> np.ndarray:
    """Marks of the sparse features that held-out documents have, uint8.

    No others are read in weights learned without them, which take much less memory then. All features
    count, so the marks are empty, if only so many of the largest weights of a label are kept.
    """
    if not held.size or settings.max_weights:
        return np.zeros(0, np.uint8)
    marks = np.zeros(X.sparse.shape[1], np.uint8)
    marks[X.sparse[held > 0].indices] = 1
    return marks


def solve_clusters(
    X: Features,
    R: sp.csr_matrix,
    M: sp.csr_matrix,
    child_ptr: np.ndarray,
    settings: RankerSettings,
    *,
    keep: Callable[..., None],
    seed: int,
    threads: int,
    report: Reporter,
    name: str,
    document_weights: np.ndarray | None = None,
    held: np.ndarray | None = None,
) -> None:
    """Learn W[t] on M[t], cluster by cluster: the paper's equation 9 with θ fixed.

    `R` is the relevance, of shape (N, K[t]), and `M` has the documents of each cluster, (N, K[t-1]).
    `document_weights` are factors of all costs of a document; None: all 1. `name` is the name of the
    step in `report`. Several threads call `keep` with the number of each cluster and its weights, in
    any order; with `held`, a mark (uint8) per document that is held out, also with the weights that are
    learned without these documents, of features that these have.
    """
    positives, negative_cost = costs(R, settings)
    held = np.zeros(0, np.uint8) if held is None else held
    members = sp.csc_matrix(M)
    members.sort_indices()
    problem = LevelProblem(
        X,
        norms=X.squared_norms(),
        document_weights=np.ones(X.rows, np.float32) if document_weights is None else document_weights,
        members=members,
        positives=positives,
        positive_ptr=positives.indptr.astype(np.int64),
        negative_cost=negative_cost,
        settings=settings,
        seed=seed * 1_000_003,
        held=held,
        wanted=features_of_held(X, held, settings),
    )
    scratch = Scratch(X)
    tasks = plan(np.diff(members.indptr), child_ptr, X.rows, X.sparse.shape[1], parallel_tasks(threads))
    pieces = Pieces(tasks)

    def work(task: Task, cancel: np.ndarray) -> Solved:
        return problem.solve(task, scratch, cancel)

    def consume(task: Task, weights: Solved) -> None:
        cluster = pieces.completed(task, weights)
        if cluster is not None:
            keep(task.cluster, *cluster)

    run_anywhere(work, tasks, threads, report.step(name, len(tasks)), consume, stage="rankers")
    parallel.give_back()


def solve_level(
    X: Features,
    R: sp.csr_matrix,
    M: sp.csr_matrix,
    child_ptr: np.ndarray,
    settings: RankerSettings,
    **options: Unpack[SolverOptions],
) -> list[ClusterWeights]:
    """Like `solve_clusters`, but return the weights of all clusters."""
    solved: dict[int, ClusterWeights] = {}
    solve_clusters(X, R, M, child_ptr, settings, keep=solved.__setitem__, **options)
    return [solved[cluster] for cluster in range(child_ptr.size - 1)]
