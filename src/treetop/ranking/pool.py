"""What several trees say about the labels of some documents, while their best labels are found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from treetop.kernels.transforms import ADD
from treetop.ranking.beam import Nodes, Passed, SearchPlan, no_results
from treetop.ranking.ranker import Ranker


class Listed(NamedTuple):
    """What the search in one tree found out about some documents."""

    found: Nodes  # clusters below the final beams; the scores of their children, and how many
    bounds: np.ndarray  # float32, by document: what no other label exceeds
    passed: Passed

    def first(self, rows: int) -> Listed:
        """The part of as many documents."""
        found = Nodes(*(array[:rows] for array in self.found))
        return Listed(found, self.bounds[:rows], Passed(*(array[:rows] for array in self.passed)))


class Pool(NamedTuple):
    """Candidates of some documents, ascending by label."""

    ptr: np.ndarray  # int64, by document
    labels: np.ndarray  # int64
    limits: np.ndarray  # float32, trees x candidates: the score, or what it does not exceed
    above: np.ndarray  # int64, trees x candidates: the node whose score the limit is, or LISTED

    @property
    def counts(self) -> np.ndarray:
        """How many candidates each document has."""
        return np.diff(self.ptr)

    def part(self, kept: np.ndarray) -> Pool:
        """Some of the candidates: `kept` is a mask."""
        ptr = np.append(0, np.cumsum(kept))[self.ptr]
        limits, above = self.limits.compress(kept, axis=1), self.above.compress(kept, axis=1)
        return Pool(ptr, self.labels[kept], limits, above)


class Search(NamedTuple):
    """A search in several trees for some documents, with the arrays it writes to."""

    rankers: Sequence[Ranker]
    plans: Sequence[SearchPlan]
    lists: Sequence[Listed]
    gathered: np.ndarray  # int64, documents x the labels that all trees may list

    @classmethod
    def with_room(cls, rankers: Sequence[Ranker], plans: Sequence[SearchPlan], rows: int) -> Search:
        """A search with room for `rows` documents."""
        lists = []
        for ranker, plan in zip(rankers, plans, strict=True):
            clusters = np.empty((rows, ranker.most_opened(plan)), np.int64)
            scores = np.empty((rows, ranker.most_listed(plan)), np.float32)
            passed = Passed(*no_results(rows, ranker.most_passed(plan)))
            found = Nodes(clusters, scores, np.empty(rows, np.int64))
            lists.append(Listed(found, np.empty(rows, np.float32), passed))
        room = sum(listed.found.scores.shape[1] for listed in lists)
        return cls(rankers, plans, lists, np.empty((rows, room), np.int64))

    @property
    def multiplies(self) -> bool:
        """Whether scores are logarithms of what counts in the mean."""
        return self.plans[0].score.exponentiate

    @property
    def falls(self) -> bool:
        """Whether no label scores more than a node above it."""
        return bool(self.plans[0].score.combines[-1] == ADD)

    def of_rows(self, first: int, last: int) -> Search:
        """The search for some of the documents."""
        lists = [listed.first(last - first) for listed in self.lists]
        plans = [plan.of_rows(first, last) for plan in self.plans]
        return Search(self.rankers, plans, lists, self.gathered[: last - first])

    def values(self, scores: np.ndarray) -> np.ndarray:
        """What scores count in the mean over the trees, float64."""
        return np.exp(scores, dtype=np.float64) if self.multiplies else scores.astype(np.float64)

    def means(self, scores: np.ndarray) -> np.ndarray:
        """The mean over the trees, float64, of scores by tree."""
        return np.asarray(self.values(scores).mean(0))
