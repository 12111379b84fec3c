"""Linear rankers W[1] … W[D] on a label tree, and prediction with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from treetop.features.hybrid import Features
from treetop.labels.tree import Tree
from treetop.ranking.beam import SearchPlan, beam_search, to_csr
from treetop.ranking.checking import check_weights
from treetop.ranking.scores import PathScore, path_score
from treetop.ranking.weights import Weights
from treetop.runtime.arrays import part, prefixed
from treetop.settings import auto
from treetop.settings.parts import RankerSettings


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
        if beam is None and allowed_labels is None and candidates is None:
            return self.usual_plan
        return self._plan(beam, allowed_labels, candidates)

    @cached_property
    def usual_plan(self) -> SearchPlan:
        """The search with the beams of the settings and without limits."""
        return self._plan()

    def _plan(
        self,
        beam: int | None = None,
        allowed_labels: np.ndarray | None = None,
        candidates: sp.csr_matrix | None = None,
    ) -> SearchPlan:
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


def score_of_levels(settings: RankerSettings, levels: int, depth: int) -> PathScore:
    """Return the score transforms of levels 1 … `levels` of a tree of depth `depth`."""
    return path_score(tuple(at.score_transform for at in settings.by_level(depth)[:levels]))


def beams_of_levels(settings: RankerSettings, levels: int, depth: int) -> np.ndarray:
    """Return the beam widths, int64, of levels 1 … `levels` of a tree of depth `depth`."""
    return np.array([at.beam for at in settings.by_level(depth)[:levels]], np.int64)
