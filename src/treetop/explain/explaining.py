"""Explanations of an estimator's labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from treetop.explain.explanation import Explanation, Neighbour, Node, Path, Word
from treetop.explain.letters import Key, told_by_words
from treetop.explain.spans import spans_of
from treetop.features.hybrid import Features
from treetop.features.words.tokens import cut_at_word
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
    model: Any,
    text: str | None,
    X: Features,
    label: int,
    words: int,
    alike: list[tuple[int, float]],
    beams: list[list[set[int]]],
) -> Explanation:
    """Why one label got its score: the mean over the trees of what is on the way to it."""
    paths = [(ranker, path_to(ranker, X, label)) for ranker in model.rankers_]
    steps = [step for _, path in paths for step in path]
    trees = len(paths)
    values = np.asarray(np.sum([step.words for step in steps], axis=0, dtype=np.float64)) / trees
    shown = top_words(model, text, X.sparse.indices, values, words)
    reached = [is_reached(path, beam) for (_, path), beam in zip(paths, beams, strict=True)]
    scores = [score_of(path, ranker) for ranker, path in paths]
    return Explanation(
        str(model.classes_[label]),
        float(np.mean(np.where(reached, scores, 0.0))),
        shown,
        float(values.sum() - sum(word.value for word in shown)),
        sum(step.encoder for step in steps) / trees,
        sum(step.bias for step in steps) / trees,
        [
            Path(score, passed, [node_of(model, ranker, step) for step in path])
            for score, passed, (ranker, path) in zip(scores, reached, paths, strict=True)
        ],
        [neighbour_of(model, document, similarity, label) for document, similarity in alike],
    )


def top_words(
    model: Any, text: str | None, features: np.ndarray, values: np.ndarray, most: int
) -> list[Word]:
    """The `most` words that add most, and where they stand.

    What an n-gram adds anywhere and what it adds for standing at the beginning is one sum. In a model
    that reads words, what letters add is told by words too.
    """
    found = np.flatnonzero(values)
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


def manner_of(model: Any, feature: int) -> tuple[str, bool, int | None]:
    """Whether a feature is of words or of characters, whether case was folded, how far was read."""
    for one in getattr(model.tfidf_, "fitted", ()):
        if feature < one.features:
            return one.analyser.unit, one.analyser.lowercase, one.analyser.first
        feature -= one.features
    return "word", True, None


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
