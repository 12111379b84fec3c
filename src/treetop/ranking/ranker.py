"""Linear rankers W[1] … W[D] on a label tree: training, level by level, and prediction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from treetop.features.hybrid import Features
from treetop.labels.relevance import all_levels, binarize
from treetop.labels.tree import Tree
from treetop.ranking.beam import Nodes, SearchPlan, Start, beam_search, search_anywhere, to_csr
from treetop.ranking.checking import check_weights
from treetop.ranking.chunks import Chunks, assemble
from treetop.ranking.scores import PathScore, path_score
from treetop.ranking.solver import solve_clusters
from treetop.ranking.weights import ClusterWeights, LabelWeights, Weights, weight_form, with_share
from treetop.runtime.arrays import part, prefixed
from treetop.runtime.progress import Reporter
from treetop.settings import auto
from treetop.settings.parts import RankerSettings


def shortlist(predicted: sp.csr_matrix | None, positive: sp.csr_matrix | None) -> sp.csr_matrix:
    """Compute M[t], the paper's equation 8, by cluster: shape (N, K[t-1]).

    M[t] = binarize(P[t-1] C[t]ᵀ) + binarize(Y[t-1] C[t]ᵀ) has all children of a cluster or none. So it
    suffices to know the clusters that level t - 1 predicts, P[t-1], or that are true, Y[t-1]; either
    may be omitted.
    """
    shortlists = [binarize(matrix) for matrix in (predicted, positive) if matrix is not None]
    return binarize(sp.csr_matrix(sum(shortlists)))


def all_below_root(documents: int) -> sp.csr_matrix:
    """Return M[1] by cluster: every document is trained on all children of the root."""
    return sp.csr_matrix(np.ones((documents, 1), np.float32))


@dataclass(frozen=True)
class Ranker:
    """A label tree, its weights, and the settings of the search."""

    tree: Tree
    weights: Weights
    settings: RankerSettings  # resolved for the depth of the tree

    def __repr__(self) -> str:
        return f"<Ranker: tree {self.tree}>"

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", auto.for_depth(self.settings, self.tree.depth))
        _ = self.score, self.beams  # raise if their values by level do not fit the tree

    def predict(
        self,
        X: Features,
        top: int,
        threads: int,
        beam: int | None = None,
        allowed_labels: np.ndarray | None = None,
        candidates: sp.csr_matrix | None = None,
    ) -> sp.csr_matrix:
        """Return the scores of the best `top` labels of each document, CSR (N, L), best first.

        `allowed_labels` are the only labels that may be predicted; `candidates`, a matrix of shape
        (N, L), are the only ones for each document.
        """
        plan = self.plan(beam, allowed_labels, candidates)._replace(top=min(top, self.labels))
        best = beam_search(self.weights, X, plan, threads)
        # Positions without a result hold node 0; `to_csr` drops them.
        label_numbers = self.tree.label_of[np.maximum(best.nodes - self.first_leaf, 0)]
        return to_csr(best._replace(nodes=label_numbers), self.labels)

    @cached_property
    def score(self) -> PathScore:
        """The score transforms of the levels."""
        return score_of_levels(self.settings, self.tree.depth, self.tree.depth)

    @cached_property
    def beams(self) -> np.ndarray:
        """The beam width of prediction (int64) at levels 1 … D; that of the labels is not used."""
        return beams_of_levels(self.settings, self.tree.depth, self.tree.depth)

    @cached_property
    def labels(self) -> int:
        """L, the number of labels."""
        return int(self.tree.label_of.size)

    @cached_property
    def first_leaf(self) -> int:
        """The number of the first node of the labels' level across all levels."""
        return int(self.weights.child_ptr[-1]) - self.labels

    def plan(
        self,
        beam: int | None = None,
        allowed_labels: np.ndarray | None = None,
        candidates: sp.csr_matrix | None = None,
    ) -> SearchPlan:
        """The search for all labels below the final beam; arguments as in `predict`."""
        # A wider beam than all nodes of a level holds no more of them, but takes memory.
        beams = np.full(self.tree.depth, beam, np.int64) if beam else self.beams
        beams = np.minimum(beams, max(self.tree.sizes[:-1], default=0) + 1)
        plan = SearchPlan(self.tree.depth, beams, self.labels, self.score)
        if allowed_labels is not None:
            plan = plan._replace(allowed=self._allowed_nodes(self.leaves_of(allowed_labels)))
        if candidates is not None:
            pointers = candidates.indptr.astype(np.int64)
            plan = plan._replace(candidates=(pointers, self.leaves_of(candidates.indices)))
        return plan.reaching_all()

    def leaves_of(self, labels: np.ndarray) -> np.ndarray:
        """The nodes of labels, numbered across all levels."""
        return np.asarray(self.first_leaf + self.tree.node_of[labels])

    def level_of(self, nodes: np.ndarray) -> np.ndarray:
        """The levels of nodes, numbered across all levels; the root, -1, has level 0."""
        ends = np.cumsum(self.tree.sizes)
        return np.where(nodes < 0, 0, 1 + np.searchsorted(ends, nodes, "right"))

    def most_opened(self, plan: SearchPlan) -> int:
        """An upper limit of the clusters below the final beam of a search."""
        final = int(plan.beams[plan.depth - 2]) if plan.depth > 1 else 1
        return min(final, self.weights.child_ptr.size - 1)

    def most_listed(self, plan: SearchPlan) -> int:
        """An upper limit of the labels that a search lists below its final beam."""
        pointers = plan.candidates[0]
        if pointers.size:
            return int(np.diff(pointers).max(initial=0))
        final = int(plan.beams[max(0, plan.depth - 2)])
        return min(final * self.weights.largest, self.labels)

    def most_passed(self, plan: SearchPlan) -> int:
        """An upper limit of the nodes that a search scores above its labels."""
        opened = [1, *plan.beams[: plan.depth - 2].tolist()]
        sizes = self.tree.sizes[: plan.depth - 1]
        largest = self.weights.largest
        return sum(min(beam * largest, size) for beam, size in zip(opened, sizes, strict=False))

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays of tree and weights by name, for a file."""
        return {**self.tree.arrays(), **prefixed("weights", self.weights.arrays)}

    @classmethod
    def from_arrays(
        cls,
        arrays: Mapping[str, np.ndarray],
        settings: RankerSettings,
        widths: tuple[int, int],
        threads: int = 1,
    ) -> Ranker:
        """The inverse of `arrays`, which may be from a stranger.

        `widths` are the columns of both halves of the features.
        """
        tree = Tree.from_arrays(arrays)
        weights = check_weights(part(arrays, "weights"), tree, widths, threads)
        return cls(tree, weights, settings)

    def _allowed_nodes(self, leaves: np.ndarray) -> np.ndarray:
        """Return a mask, uint8 by node, of the leaves and all their ancestors."""
        allowed = np.zeros(self.weights.child_ptr[-1], np.uint8)
        while leaves.size:
            allowed[leaves] = 1
            leaves = np.unique(self.weights.parent_of[leaves])
            leaves = leaves[leaves >= 0]
        return allowed


def step_name(title: str, level: int, depth: int) -> str:
    """The name of a level's step for the reporter; a flat tree has no levels to speak of."""
    return f"{title}rankers" + (f", level {level} of {depth}" if depth > 1 else "")


def train_ranker(
    X: Features,
    Y: sp.csr_matrix,
    tree: Tree,
    settings: RankerSettings,
    *,
    seed: int,
    threads: int,
    report: Reporter | None = None,
    weights: np.ndarray | None = None,
    head: LabelWeights | None = None,
    scale: float = 1.0,
    title: str = "",
) -> Ranker:
    """Train one ranker on all documents; parameters as in `train_rankers`."""
    (ranker,) = train_rankers(
        X,
        Y,
        tree,
        settings,
        seed=seed,
        threads=threads,
        report=report,
        weights=weights,
        head=head,
        scale=scale,
        title=title,
    )
    return ranker


def train_rankers(
    X: Features,
    Y: sp.csr_matrix,
    tree: Tree,
    settings: RankerSettings,
    *,
    seed: int,
    threads: int,
    report: Reporter | None = None,
    weights: np.ndarray | None = None,
    head: LabelWeights | None = None,
    scale: float = 1.0,
    title: str = "",
    held: np.ndarray | None = None,
) -> tuple[Ranker, ...]:
    """Run the second loop of Algorithm 2: for t = 1 … D learn W[t] on M[t], then P = Top(W[t]ᵀΦ, k).

    `weights` are the weights of the documents; None: all 1. `head` is another linear score of each
    label, whose share of the final score is `head_share`. `scale` is a factor of the learned weights of
    sparse features. `title` begins the names of reported steps. With `held`, a mark (uint8) per
    document that is held out, a second ranker is returned, which was trained without these documents.
    """
    settings = auto.for_depth(settings, tree.depth)
    relevance = all_levels(Y, tree, settings.cost_sensitive)
    largest = max(int(np.diff(pointers).max()) for pointers in tree.child_ptr)
    form, first = weight_form(settings.weight_type, largest), 0
    models = [Chunks(X.widths[0], form) for _ in range(1 if held is None else 2)]
    M = all_below_root(X.rows)
    by_level = settings.by_level(tree.depth)
    for level in range(1, tree.depth + 1):
        R = relevance.pop(0)
        pointers = tree.child_ptr[level - 1]

        def keep(
            cluster: int, *both: ClusterWeights, first: int = first, pointers: np.ndarray = pointers
        ) -> None:
            for chunks, solved in zip(models, both, strict=True):
                if pointers is tree.child_ptr[-1] and head is not None:
                    labels = tree.label_of[pointers[cluster] : pointers[cluster + 1]]
                    solved = with_share(solved, labels, head, settings.head_share)
                if scale != 1:
                    solved = solved._replace(values=np.float32(scale) * solved.values)
                chunks.add(first + cluster, solved)

        solve_clusters(
            X,
            R,
            M,
            pointers,
            by_level[level - 1],
            keep=keep,
            seed=seed + level,
            threads=threads,
            report=report or Reporter(),
            name=step_name(title, level, tree.depth),
            document_weights=weights,
            held=held,
        )
        first += pointers.size - 1
        if level < tree.depth:
            P, source = None, by_level[level].shortlist  # that of the next level
            if source != "true":
                so_far = models[0].assembled(tree, threads)
                P = best_nodes(so_far, X.scaled(1 / scale), tree, level, settings, threads=threads)
            M = shortlist(P, None if source == "beam" else R)
    return tuple(Ranker(tree, chunks.assembled(tree, threads), settings) for chunks in models)


def predicted_nodes(
    clusters: list[ClusterWeights],
    X: Features,
    tree: Tree,
    level: int,
    settings: RankerSettings,
    *,
    threads: int,
    above: sp.csr_matrix | None = None,
) -> sp.csr_matrix:
    """Compute P[t], the paper's equation 7: the best nodes of `level` and their scores, (N, K[t]).

    `clusters` are the weights of all levels up to `level`. With `above`, P[t-1] and its scores, the
    search starts there, and `clusters` are the weights of `level` alone.
    """
    if above is not None:
        clusters = [*without_weights(tree, level, X.dense.shape[1]), *clusters]
    weights = assemble(clusters, tree, X.sparse.shape[1], threads)
    return best_nodes(weights, X, tree, level, settings, threads=threads, above=above)


def best_nodes(
    weights: Weights,
    X: Features,
    tree: Tree,
    level: int,
    settings: RankerSettings,
    *,
    threads: int,
    above: sp.csr_matrix | None = None,
) -> sp.csr_matrix:
    """Like `predicted_nodes`, with the weights of all levels up to `level`."""
    offset = sum(tree.sizes[: level - 1])
    score = score_of_levels(auto.for_depth(settings, tree.depth), level, tree.depth)
    beams = beams_of_levels(settings, level, tree.depth)
    plan = SearchPlan(level, beams, top=int(beams[-1]), score=score)
    if above is not None:
        first = offset - tree.sizes[level - 2]
        worth = np.log(np.maximum(above.data, 1e-30)) if score.exponentiate else above.data
        start = Start(
            level - 1,
            ptr=above.indptr.astype(np.int64),
            nodes=above.indices.astype(np.int64) + first,
            scores=worth.astype(np.float32),
        )
        plan = plan._replace(start=start)
    best = search_anywhere(weights, X, plan, threads)
    predicted = to_csr(Nodes(best.nodes - offset, best.scores, best.counts), tree.sizes[level - 1])
    predicted.sort_indices()
    return predicted


def score_of_levels(settings: RankerSettings, levels: int, depth: int) -> PathScore:
    """Return the score transforms of levels 1 … `levels` of a tree of depth `depth`."""
    return path_score(tuple(at.score_transform for at in settings.by_level(depth)[:levels]))


def beams_of_levels(settings: RankerSettings, levels: int, depth: int) -> np.ndarray:
    """Return the beam widths, int64, of levels 1 … `levels` of a tree of depth `depth`."""
    return np.array([at.beam for at in settings.by_level(depth)[:levels]], np.int64)


def without_weights(tree: Tree, level: int, dense_columns: int) -> list[ClusterWeights]:
    """Return clusters without weights for the levels above `level`."""
    nothing = np.zeros(0, np.int32)
    return [
        ClusterWeights(
            features=nothing,
            ends=np.zeros(0, np.int64),
            children=nothing,
            values=np.zeros(0, np.float32),
            dense=np.zeros((dense_columns, size), np.float32),
            biases=np.zeros(size, np.float32),
        )
        for pointers in tree.child_ptr[: level - 1]
        for size in np.diff(pointers).tolist()
    ]
