"""The documents of a search, and what its trials share: features, label trees and vectors."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import replace
from typing import NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp

from treetop.evaluation.context import ranking_context
from treetop.evaluation.metrics import metric_of
from treetop.evaluation.sums import Sums
from treetop.features.hybrid import Features, cat, center_of, features
from treetop.features.words.tfidf import fit_tfidf
from treetop.features.words.views import View, views_of
from treetop.labels.tree import Tree
from treetop.ranking.pooling import best_of_trees
from treetop.ranking.ranker import Ranker
from treetop.runtime import Runtime
from treetop.settings import auto
from treetop.settings.schema import LinearSettings, TransformerSettings
from treetop.training.forest import train_forests, tree_of

Value = TypeVar("Value")
# Features of so many settings stay in memory, and so many label trees.
FEATURES_KEPT, TREES_KEPT = 4, 32
LISTED = 5
# What a label tree depends on besides the features.
TREE = (
    "label_features",
    "tree_features",
    "tree_passes",
    "seed",
    "tree",
    "leaf",
    "branching",
    "balanced",
)


class SplitDocuments(NamedTuple):
    """Texts, labels and, if there is an encoder, vectors: of training and held out."""

    texts: list[str]
    Y: sp.csr_matrix
    held_texts: list[str]
    held_labels: sp.csr_matrix
    vectors: np.ndarray | None = None
    held_vectors: np.ndarray | None = None


class Prepared(NamedTuple):
    """Features under some settings."""

    X: Features
    held: Features
    views: list[View]
    key: Hashable  # the settings they depend on


class Kept(OrderedDict[Hashable, Value]):
    """The values that were used last, at most `most` of them."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def get_or_make(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """Return the value of a key, which is made if it is not kept."""
        if key not in self:
            self[key] = make()
            if len(self) > self.most:
                self.popitem(last=False)
        self.move_to_end(key)
        return self[key]


class Workspace:
    """Trains under any settings and scores the held-out documents."""

    def __init__(self, documents: SplitDocuments, metric: str, threads: int) -> None:
        self.documents, self.metric, self.threads = documents, metric, threads
        self._features: Kept[Prepared] = Kept(FEATURES_KEPT)
        self._trees: Kept[Tree] = Kept(TREES_KEPT)

    def growing(self, settings: LinearSettings) -> Iterator[Sums]:
        """The metric with the first tree, with the first two, and so on to all."""
        prepared = self.prepared(settings)
        count = self.trees(settings, prepared.views)
        rankers: list[Ranker] = []
        for number in range(count):
            rankers.append(self.ranker(settings, prepared, number))
            if number == 0 or number == count - 1:
                yield self.measured(rankers, prepared.held)

    def trees(self, settings: LinearSettings, views: list[View]) -> int:
        """How many trees or models the settings describe."""
        if auto.is_flat(settings, self.documents.Y.shape[1]):
            return min(settings.trees, max(1, len(views)))
        return settings.trees

    def prepared(self, settings: LinearSettings) -> Prepared:
        """Features under these settings; those of the last few settings are kept."""
        key = (settings.analysers(), tuple(map(tuple, settings.views())), weight_of(settings))
        return self._features.get_or_make(key, lambda: self.make_features(settings, key))

    def make_features(self, settings: LinearSettings, key: Hashable) -> Prepared:
        """Compute the features of all documents."""
        texts, held_texts = self.documents.texts, self.documents.held_texts
        words, tfidf = fit_tfidf(settings.analysers(), texts, self.threads)
        views = views_of(settings.views(), words.widths)
        held = words.transform(held_texts, self.threads)
        vectors, held_vectors = self.documents.vectors, self.documents.held_vectors
        if vectors is None or held_vectors is None:
            return Prepared(features(tfidf), features(held).blank_marked(), views, key)
        assert isinstance(settings, TransformerSettings)
        center, weight = center_of(vectors) if settings.center else None, settings.dense_weight
        pair = cat(tfidf, vectors, weight, center), cat(held, held_vectors, weight, center)
        return Prepared(pair[0], pair[1].blank_marked(held_texts), views, key)

    def ranker(self, settings: LinearSettings, prepared: Prepared, number: int) -> Ranker:
        """Train one of the trees, as `train_forests` would."""
        settings = replace(settings, seed=settings.seed + number, trees=1)
        views = prepared.views and [prepared.views[number % len(prepared.views)]]
        X = prepared.X
        tree = None
        if not auto.is_flat(settings, self.documents.Y.shape[1]):
            key = (prepared.key, number, *(getattr(settings, name) for name in TREE))
            tree = self._trees.get_or_make(
                key,
                lambda: tree_of(
                    views[0].of(X, self.threads) if views else X,
                    self.documents.Y,
                    None,
                    settings,
                    settings.seed,
                    self.threads,
                ),
            )
        runtime = Runtime(threads=self.threads)
        Y = self.documents.Y
        return train_forests(X, Y, None, settings, runtime, tree=tree, views=views).rankers[0]

    def measured(self, rankers: list[Ranker], held: Features) -> Sums:
        """The metric of these trees together on the held-out documents."""
        if len(rankers) == 1:
            scores = rankers[0].predict(held, LISTED, self.threads)
        else:
            scores = best_of_trees(rankers, held, LISTED, self.threads)
        return self.of_scores(scores)

    def of_scores(self, scores: sp.csr_matrix) -> Sums:
        """The metric of scores of the held-out documents."""
        metric, k = metric_of(self.metric)
        Y = self.documents.Y
        context = ranking_context(
            self.documents.held_labels,
            scores,
            k,
            train_counts=np.bincount(Y.indices, minlength=Y.shape[1]),
            train_documents=Y.shape[0],
        )
        assert metric.sums is not None
        return metric.sums(context)


def weight_of(settings: LinearSettings) -> float | None:
    """The weight of the dense half, if there is one."""
    return settings.dense_weight if isinstance(settings, TransformerSettings) else None
