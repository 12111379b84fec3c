"""Explain a model's labels for a document.

A model is a weighted mean of trees, and so is an ensemble of models: every sum here goes over trees.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
import scipy.sparse as sp

from treetop.errors import TreetopError
from treetop.explain.contributions import NamedGrams, together
from treetop.explain.explanation import Explanation, Neighbour, Node, Path
from treetop.explain.grams import DocumentGrams
from treetop.explain.spans import Occurrences
from treetop.features.given import parts_of
from treetop.features.hybrid import Features
from treetop.labels.alignment import columns_of
from treetop.labels.types import plain_label
from treetop.model.ensemble import EnsembleModel
from treetop.model.model import Model
from treetop.model.predictor import Predictor
from treetop.ranking.combining import largest
from treetop.ranking.path import Step, beams_of, counted, is_reached, path_to, score_of
from treetop.ranking.ranker import Ranker
from treetop.runtime import Runtime

MAX_LABELS_OF_NODE = 3
# Labels whose ranks are known; probabilities of all others are those of labels that come after them.
RANKED = 20


@dataclass(frozen=True)
class Member:
    """A model, its features of the document, and its weight in the ensemble (1 outside of one)."""

    model: Model
    X: Features
    grams: DocumentGrams
    weight: float
    beams: list[list[set[int]]]  # per tree and level: the nodes that beam search follows
    similar: list[tuple[int, float]]  # training documents and their similarity


@dataclass(frozen=True)
class TracedPath:
    """The path through one tree, and the parts of its raw score."""

    path: Path
    weight: float  # of the tree in the mean of all
    words: np.ndarray  # float64, contribution of each of the document's features
    encoder: float
    bias: float


def explain(
    model: Predictor,
    document: object,
    names: Sequence[object] | None,
    runtime: Runtime,
    *,
    k: int = 5,
    words: int = 20,
    neighbours: int = 3,
) -> list[Explanation]:
    """Explain the labels `names` of a document, or its best `k` labels.

    `document` is a text, a matrix of one row if the model was trained on a matrix, or a text with ready
    features. At most `words` words and `neighbours` training documents are listed.
    """
    explainer = Explainer(model, document, runtime, words=words, neighbours=neighbours)
    return explainer.explain(explainer.best(k) if names is None else names)


class Explainer:
    """Explains labels of one document; what they share is computed once."""

    def __init__(
        self,
        model: Predictor,
        document: object,
        runtime: Runtime,
        *,
        words: int = 20,
        neighbours: int = 3,
    ) -> None:
        documents = [document] if isinstance(document, str) else document
        texts, _ = parts_of(documents)
        text = None if texts is None else next(iter(texts), None)
        self.model, self.runtime, self.words = model, runtime, words
        self.X = model.features(documents, runtime)
        self.named, self.occurrences = NamedGrams(), None if text is None else Occurrences(text)
        self.members = [
            Member(
                member,
                X,
                DocumentGrams(member, X.sparse.indices, self.named, self.occurrences),
                weight,
                [beams_of(ranker, X) for ranker in member.rankers],
                nearest_to(member, X, neighbours),
            )
            for member, X, weight in models_in(model, self.X)
        ]

    def best(self, k: int) -> list[Any]:
        """Names of the best `k` labels."""
        best = self.model.scores_from(self.X, k, self.runtime)
        names: list[Any] = self.model.classes[best.indices[: best.indptr[1]]].tolist()
        return names

    def explain(self, names: Sequence[Any]) -> list[Explanation]:
        """Explain labels."""
        labels = columns_of(names, self.model.vocabulary).tolist()
        explanations = [self.explain_label(label) for label in labels]
        if self.combined_scores is not None:
            scores = self.combined_scores[labels].tolist()
            pairs = zip(explanations, scores, strict=True)
            explanations = [replace(one, score=score) for one, score in pairs]
        if not self.model.calibrated:
            return explanations
        return [
            replace(one, probability=self.probability_of(label, one))
            for one, label in zip(explanations, labels, strict=True)
        ]

    def probability_of(self, label: int, explanation: Explanation) -> float:
        """The probability that a label is right: of one that is not predicted 0, as its score."""
        listed = self.best_scores
        at = np.flatnonzero(listed.indices == label)
        if at.size:
            return float(self.model.probabilities(self.X, listed).data[at[0]])
        if not explanation.reached:
            return 0.0
        scores = np.append(listed.data, np.float32(explanation.score))
        labels = np.append(listed.indices, label)
        row = sp.csr_matrix((scores, labels, np.array([0, labels.size])), shape=listed.shape)
        return float(self.model.probabilities(self.X, row).data[-1])

    @cached_property
    def best_scores(self) -> sp.csr_matrix:
        """The scores of the best labels, best first; a probability depends on them too."""
        return self.model.scores_from(self.X, RANKED, self.runtime)

    @cached_property
    def combined_scores(self) -> np.ndarray | None:
        """The scores of all labels, if the way to combine members depends on all of them."""
        if not isinstance(self.model, EnsembleModel) or self.model.combine == "average":
            return None
        scores = self.model.scores_from(self.X, len(self.model.classes), self.runtime)
        return np.asarray(scores.toarray()[0])

    def explain_label(self, label: int) -> Explanation:
        """Explain the score of one label.

        Scores and parts are means over all trees. A label that beam search reaches in none of them is
        not predicted: its score is 0, and the parts are those it would have had.
        """
        traced = [paths_of(member, label) for member in self.members]
        reached = any(one.path.reached for paths in traced for one in paths)
        encoder, bias, raw_score, score, parts = 0.0, 0.0, 0.0, 0.0, []
        for member, paths in zip(self.members, traced, strict=True):
            values = np.zeros(member.X.sparse.indices.size)
            for one in paths:
                score += one.weight * one.path.score * reached
                raw_score += one.weight * one.path.raw_score
                encoder += one.weight * one.encoder
                bias += one.weight * one.bias
                values += one.weight * one.words
            parts.append(member.grams.contributions(values))
        grams = together(parts)
        largest = grams.largest(self.named, self.occurrences, self.words)
        return Explanation(
            label=plain_label(self.model.classes[label]),
            score=score,
            words=largest,
            other_words=grams.total - sum(word.value for word in largest),
            encoder=encoder,
            bias=bias,
            raw_score=raw_score,
            paths=[one.path for paths in traced for one in paths],
            neighbours=[
                neighbour_of(member.model, document, similarity, label)
                for member in self.members
                for document, similarity in member.similar
            ],
        )


def models_in(model: Predictor, X: Any, weight: float = 1.0) -> Iterator[tuple[Model, Features, float]]:
    """The models of an ensemble, or the model itself, with their features of the document and weights.

    `X` is what `model.features` returned.
    """
    if isinstance(model, EnsembleModel):
        for member, own, share in zip(model.members, X, model.weights, strict=True):
            yield from models_in(member, own, weight * share / sum(model.weights))
        return
    if X.rows != 1:
        raise TreetopError(f"explain takes one document, not {X.rows}")
    yield cast(Model, model), X, weight


def nearest_to(model: Model, X: Features, count: int) -> list[tuple[int, float]]:
    """The most similar training documents and their similarity, if the model keeps its documents."""
    if not count or model.documents is None:
        return []
    nearest: list[tuple[int, float]] = model.documents.nearest(X, count)
    return nearest


def paths_of(member: Member, label: int) -> list[TracedPath]:
    """The path to a label through each tree of a model."""
    model, X = member.model, member.X
    traced = []
    for ranker, beams in zip(model.rankers, member.beams, strict=True):
        steps = path_to(ranker, X, label)
        parts = counted(steps, ranker)
        path = Path(
            score=score_of(steps, ranker),
            reached=X.blank is None and is_reached(steps, beams),  # a blank text gets no labels
            nodes=[node_of(model, ranker, step) for step in steps],
            raw_score=sum(step.raw for step in parts),
            transform=ranker.settings.score_transform,
        )
        traced.append(
            TracedPath(
                path,
                weight=member.weight / len(model.rankers),
                words=np.asarray(np.sum([step.words for step in parts], axis=0, dtype=np.float64)),
                encoder=sum(step.encoder for step in parts),
                bias=sum(step.bias for step in parts),
            )
        )
    return traced


def node_of(model: Model, ranker: Ranker, step: Step) -> Node:
    """A node, with the most frequent labels below it."""
    tree, first, last = ranker.tree, step.node, step.node + 1
    for pointers in tree.child_ptr[step.level :]:
        first, last = int(pointers[first]), int(pointers[last])
    below = tree.label_of[first:last]
    order = largest(np.asarray(model.label_counts)[below], MAX_LABELS_OF_NODE)
    return Node(
        level=step.level,
        raw=step.raw,
        worth=step.worth,
        siblings=step.siblings,
        labels=[plain_label(model.classes[label]) for label in below[order]],
        words=float(step.words.sum(dtype=np.float64)),
        encoder=step.encoder,
        bias=step.bias,
    )


def neighbour_of(model: Model, document: int, similarity: float, label: int) -> Neighbour:
    """A training document by its number."""
    assert model.documents is not None
    labels = model.documents.labels_of(document)
    names = [plain_label(model.classes[number]) for number in labels]
    text = model.documents.text_of(document)
    return Neighbour(document, similarity, text, names, label in labels)
