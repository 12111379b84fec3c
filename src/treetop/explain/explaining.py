"""Explanations of a model's labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from treetop.errors import TreetopError
from treetop.explain.explanation import Explanation, Neighbour, Node, Path, Word
from treetop.explain.letters import Key, told_by_words
from treetop.explain.merging import merged
from treetop.explain.spans import spans_of
from treetop.features.hybrid import Features
from treetop.features.words.tokens import cut_at_word
from treetop.labels.alignment import columns_of
from treetop.model.model import EnsembleModel, Model, Predictor
from treetop.ranking.path import Step, beams_of, is_reached, path_to, score_of
from treetop.ranking.ranker import Ranker
from treetop.runtime import Runtime

LABELS_SHOWN = 3


def explain(
    model: Predictor,
    document: Any,
    names: Sequence[Any] | None,
    runtime: Runtime,
    *,
    k: int = 5,
    words: int = 20,
    neighbours: int = 3,
) -> list[Explanation]:
    """Why a document gets each of these labels, or each of its best `k`.

    `document` is a text, or a matrix of one row for a model that was trained on a matrix.
    """
    text = document if isinstance(document, str) else None
    X = model.features([document] if text is not None else document, runtime)
    if names is None:
        best = model.scores_from(X, k, runtime)
        names = model.classes[best.indices[: best.indptr[1]]].tolist()
    return explain_features(model, text, X, names, words, neighbours)


def explain_features(
    model: Predictor, text: str | None, X: Any, names: Sequence[Any], words: int, neighbours: int
) -> list[Explanation]:
    """Explanations from the model's own features; an ensemble's are its members' weighted mean."""
    if isinstance(model, EnsembleModel):
        parts = [
            explain_features(member, text, own, names, words, neighbours)
            for member, own in zip(model.members, X, strict=True)
        ]
        return [merged(explanations, model.weights) for explanations in zip(*parts)]
    model = cast(Model, model)
    if X.rows != 1:
        raise TreetopError(f"explain takes one document, not {X.rows}")
    labels = columns_of(names, model.vocabulary).tolist()
    similar = (
        [] if model.documents is None or not neighbours else model.documents.nearest(X, neighbours)
    )
    beams = [beams_of(ranker, X) for ranker in model.rankers]
    return [explain_label(model, text, X, label, words, similar, beams) for label in labels]


def explain_label(
    model: Model,
    text: str | None,
    X: Features,
    label: int,
    words: int,
    similar: list[tuple[int, float]],
    beams: list[list[set[int]]],
) -> Explanation:
    """Why one label got its score: the mean over the trees of what is on the path to it."""
    paths = [(ranker, path_to(ranker, X, label)) for ranker in model.rankers]
    steps = [step for _, path in paths for step in path]
    trees = len(paths)
    values = np.asarray(np.sum([step.words for step in steps], axis=0, dtype=np.float64)) / trees
    shown = top_words(model, text, X.sparse.indices, values, words)
    reached = [is_reached(path, beam) for (_, path), beam in zip(paths, beams, strict=True)]
    scores = [score_of(path, ranker) for ranker, path in paths]
    return Explanation(
        label=str(model.classes[label]),
        score=float(np.mean(np.where(reached, scores, 0.0))),
        words=shown,
        other_words=float(values.sum() - sum(word.value for word in shown)),
        encoder=sum(step.encoder for step in steps) / trees,
        bias=sum(step.bias for step in steps) / trees,
        paths=[
            Path(score, passed, [node_of(model, ranker, step) for step in path])
            for score, passed, (ranker, path) in zip(scores, reached, paths, strict=True)
        ],
        neighbours=[neighbour_of(model, number, value, label) for number, value in similar],
    )


def top_words(
    model: Model, text: str | None, features: np.ndarray, values: np.ndarray, most: int
) -> list[Word]:
    """The `most` words that add most, and where they stand.

    What an n-gram adds anywhere and what it adds for standing at the beginning is one sum. In a model
    that reads words, what letters add is told by words too.
    """
    found = np.flatnonzero(values)
    if model.feature_map.words is None or text is None:
        order = found[np.argsort(-np.abs(values[found]), kind="stable")][:most]
        return [Word(f"feature {features[at]}", float(values[at])) for at in order]
    sums: dict[Key, float] = {}
    reach: dict[Key, int] = {}
    for at in found.tolist():
        feature = int(features[at])
        unit, lowercase, first = manner_of(model, feature)
        key = (model.feature_map.words.feature_name(feature), unit, lowercase)
        sums[key] = sums.get(key, 0.0) + float(values[at])
        reach[key] = max(reach.get(key, 0), len(text) if first is None else first)
    if any(one.analyser.unit == "word" for one in getattr(model.feature_map.words, "fitted", ())):
        sums = told_by_words(text, sums, reach)
    best = sorted(sums, key=lambda key: -abs(sums[key]))[:most]
    return [Word(key[0], sums[key], spans_of(cut_at_word(text, reach[key]), *key)) for key in best]


def manner_of(model: Model, feature: int) -> tuple[str, bool, int | None]:
    """Whether a feature is of words or of characters, whether case was folded, how far was read."""
    for one in getattr(model.feature_map.words, "fitted", ()):
        if feature < one.features:
            return one.analyser.unit, one.analyser.lowercase, one.analyser.first
        feature -= one.features
    return "word", True, None


def node_of(model: Model, ranker: Ranker, step: Step) -> Node:
    """A node, with the most frequent labels below it."""
    tree, first, last = ranker.tree, step.node, step.node + 1
    for pointers in tree.child_ptr[step.level :]:
        first, last = int(pointers[first]), int(pointers[last])
    below = tree.label_of[first:last]
    order = np.argsort(-np.asarray(model.label_counts)[below], kind="stable")[:LABELS_SHOWN]
    names = [str(model.classes[label]) for label in below[order]]
    return Node(step.level, step.raw, step.worth, step.siblings, names)


def neighbour_of(model: Model, document: int, similarity: float, label: int) -> Neighbour:
    """A training document by its number."""
    assert model.documents is not None
    labels = model.documents.labels_of(document)
    names = [str(model.classes[one]) for one in labels]
    text = model.documents.text_of(document)
    return Neighbour(document, similarity, text, names, label in labels)
