"""Explanations of an estimator's labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from treetop.explain.explanation import Explanation, Neighbour, Node, Path, Word
from treetop.explain.spans import spans_of
from treetop.features.hybrid import Features
from treetop.ranking.path import Step, beams_of, is_reached, path_to, score_of
from treetop.ranking.ranker import Ranker

LABELS_SHOWN = 3


def explain(
    model: Any, text: str | None, X: Features, labels: Sequence[int], words: int, neighbours: int
) -> list[Explanation]:
    """Why each of `labels` (numbers) got its score, for the one document in `X`."""
    alike = nearest(model, X, neighbours)
    beams = [beams_of(ranker, X) for ranker in model.rankers_]
    return [explain_label(model, text, X, label, words, alike, beams) for label in labels]


def explain_label(
    model: Any, text: str | None, X: Features, label: int, words: int, alike: list[tuple[int, float]],
    beams: list[list[set[int]]],
) -> Explanation:  # fmt: skip
    """Why one label got its score: the mean over the trees of what is on the way to it."""
    paths = [(ranker, path_to(ranker, X, label)) for ranker in model.rankers_]
    steps = [step for _, path in paths for step in path]
    trees = len(paths)
    values = np.asarray(np.sum([step.words for step in steps], axis=0, dtype=np.float64)) / trees
    order = np.argsort(-np.abs(values), kind="stable")[:words]
    order = order[values[order] != 0]
    reached = [is_reached(path, beam) for (_, path), beam in zip(paths, beams, strict=True)]
    scores = [score_of(path, ranker) for ranker, path in paths]
    return Explanation(
        str(model.classes_[label]),
        float(np.mean(np.where(reached, scores, 0.0))),
        [word_of(model, text, int(X.sparse.indices[at]), float(values[at])) for at in order],
        float(values.sum() - values[order].sum()),
        sum(step.encoder for step in steps) / trees,
        sum(step.bias for step in steps) / trees,
        [
            Path(score, passed, [node_of(model, ranker, step) for step in path])
            for score, passed, (ranker, path) in zip(scores, reached, paths, strict=True)
        ],
        [neighbour_of(model, document, similarity, label) for document, similarity in alike],
    )


def word_of(model: Any, text: str | None, feature: int, value: float) -> Word:
    """A feature by name, and where it stands."""
    if model.tfidf_ is None or text is None:
        return Word(f"feature {feature}", value)
    name, (unit, lowercase) = model.tfidf_.feature_name(feature), unit_of(model, feature)
    return Word(name, value, spans_of(text, name, unit, lowercase))


def unit_of(model: Any, feature: int) -> tuple[str, bool]:
    """Whether a feature is of words or of characters, and whether case was folded."""
    for one in getattr(model.tfidf_, "fitted", ()):
        if feature < one.features:
            return one.analyser.unit, one.analyser.lowercase
        feature -= one.features
    return "word", True


def node_of(model: Any, ranker: Ranker, step: Step) -> Node:
    """A node, with the most frequent labels below it."""
    tree, first, last = ranker.tree, step.node, step.node + 1
    for pointers in tree.child_ptr[step.level :]:
        first, last = int(pointers[first]), int(pointers[last])
    below = tree.label_of[first:last]
    order = np.argsort(-np.asarray(model.train_counts_)[below], kind="stable")[:LABELS_SHOWN]
    names = [str(model.classes_[label]) for label in below[order]]
    return Node(step.level, step.raw, step.worth, step.siblings, names)


def nearest(model: Any, X: Features, count: int) -> list[tuple[int, float]]:
    """Training documents most like the one in `X`, if the model kept them."""
    kept = getattr(model, "documents_", None)
    return [] if kept is None or not count else kept.nearest(X, count)


def neighbour_of(model: Any, document: int, similarity: float, label: int) -> Neighbour:
    """A training document by its number."""
    labels = model.documents_.labels_of(document)
    names = [str(model.classes_[one]) for one in labels]
    text = model.documents_.text_of(document)
    return Neighbour(document, similarity, text, names, label in labels)
