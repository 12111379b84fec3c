"""Explanations of an estimator's labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from treetop.explain.explanation import Explanation, Neighbour, Node, Path, Word
from treetop.explain.letters import Key, told_by_words
from treetop.explain.spans import spans_of
from treetop.features.hybrid import Features
from treetop.features.words.tfidf import Tfidf
from treetop.features.words.tokens import cut_at_word
from treetop.model.documents import KeptDocuments
from treetop.ranking.path import Step, beams_of, is_reached, path_to, score_of
from treetop.ranking.ranker import Ranker

LABELS_SHOWN = 3


class Explainable(Protocol):
    """What explanations read of a fitted model."""

    classes_: np.ndarray
    rankers_: list[Ranker]
    tfidf_: Tfidf | None
    train_counts_: np.ndarray
    documents_: KeptDocuments | None


@dataclass(frozen=True)
class ExplainedDocument:
    """The document whose labels are explained."""

    text: str | None
    X: Features
    beams: list[list[set[int]]]  # by ranker and level, the nodes that the search follows
    neighbours: list[tuple[int, float]]  # training documents that are alike, and how much


def explain(
    model: Explainable,
    text: str | None,
    X: Features,
    labels: Sequence[int],
    words: int,
    neighbours: int,
) -> list[Explanation]:
    """Why each of `labels` (numbers) got its score, for the one document in `X`."""
    kept = model.documents_
    alike = [] if kept is None or not neighbours else kept.nearest(X, neighbours)
    document = ExplainedDocument(text, X, [beams_of(ranker, X) for ranker in model.rankers_], alike)
    return [explain_label(model, document, label, words) for label in labels]


def explain_label(
    model: Explainable, document: ExplainedDocument, label: int, words: int
) -> Explanation:
    """Why one label got its score: the mean over the trees of what is on the way to it."""
    paths = [path_to(ranker, document.X, label) for ranker in model.rankers_]
    steps = [step for path in paths for step in path]
    trees = len(paths)
    values = np.asarray(np.sum([step.words for step in steps], axis=0, dtype=np.float64)) / trees
    shown = top_words(model, document, values, words)
    reached = [is_reached(path, beam) for path, beam in zip(paths, document.beams, strict=True)]
    scores = [score_of(path, ranker) for path, ranker in zip(paths, model.rankers_, strict=True)]
    return Explanation(
        label=str(model.classes_[label]),
        score=float(np.mean(np.where(reached, scores, 0.0))),
        words=shown,
        other_words=float(values.sum() - sum(word.value for word in shown)),
        encoder=sum(step.encoder for step in steps) / trees,
        bias=sum(step.bias for step in steps) / trees,
        paths=[
            Path(score, passed, [node_of(model, ranker, step) for step in path])
            for score, passed, path, ranker in zip(scores, reached, paths, model.rankers_, strict=True)
        ],
        neighbours=[neighbour_of(model, *alike, label) for alike in document.neighbours],
    )


def top_words(
    model: Explainable, document: ExplainedDocument, values: np.ndarray, most: int
) -> list[Word]:
    """The `most` words that add most to a score, and where they stand.

    What an n-gram adds anywhere and what it adds for standing at the beginning is one sum. In a model
    that reads words, what letters add is told by words too.
    """
    text, features, found = document.text, document.X.sparse.indices, np.flatnonzero(values)
    if model.tfidf_ is None or text is None:
        order = found[np.argsort(-np.abs(values[found]), kind="stable")][:most]
        return [Word(f"feature {features[at]}", float(values[at])) for at in order]
    sums: dict[Key, float] = {}
    reach: dict[Key, int] = {}
    for at in found.tolist():
        feature = int(features[at])
        unit, lowercase, first = manner_of(model, feature)
        key = (model.tfidf_.feature_name(feature), unit, lowercase)
        sums[key] = sums.get(key, 0.0) + float(values[at])
        reach[key] = max(reach.get(key, 0), len(text) if first is None else first)
    if any(one.analyser.unit == "word" for one in getattr(model.tfidf_, "fitted", ())):
        sums = told_by_words(text, sums, reach)
    best = sorted(sums, key=lambda key: -abs(sums[key]))[:most]
    return [Word(key[0], sums[key], spans_of(cut_at_word(text, reach[key]), *key)) for key in best]


def manner_of(model: Explainable, feature: int) -> tuple[str, bool, int | None]:
    """Whether a feature is of words or of characters, whether case was folded, how far was read."""
    for one in getattr(model.tfidf_, "fitted", ()):
        if feature < one.features:
            return one.analyser.unit, one.analyser.lowercase, one.analyser.first
        feature -= one.features
    return "word", True, None


def node_of(model: Explainable, ranker: Ranker, step: Step) -> Node:
    """A node, with the most frequent labels below it."""
    tree, first, last = ranker.tree, step.node, step.node + 1
    for pointers in tree.child_ptr[step.level :]:
        first, last = int(pointers[first]), int(pointers[last])
    below = tree.label_of[first:last]
    order = np.argsort(-np.asarray(model.train_counts_)[below], kind="stable")[:LABELS_SHOWN]
    names = [str(model.classes_[label]) for label in below[order]]
    return Node(step.level, step.raw, step.worth, step.siblings, names)


def neighbour_of(model: Explainable, document: int, similarity: float, label: int) -> Neighbour:
    """A training document by its number."""
    assert model.documents_ is not None
    labels = model.documents_.labels_of(document)
    names = [str(model.classes_[one]) for one in labels]
    text = model.documents_.text_of(document)
    return Neighbour(document, similarity, text, names, label in labels)
