"""Explain a model's labels for a document.

A model is a weighted mean of trees, and so is an ensemble of models: every sum here goes over trees.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from treetop.errors import TreetopError
from treetop.explain.characters import attribute_to_words
from treetop.explain.contributions import Contributions, Gram
from treetop.explain.explanation import Explanation, Neighbour, Node, Path
from treetop.features.hybrid import Features
from treetop.features.words.tfidf import Tfidf
from treetop.labels.alignment import columns_of
from treetop.model.ensemble import EnsembleModel
from treetop.model.model import Model
from treetop.model.predictor import Predictor
from treetop.ranking.combining import largest
from treetop.ranking.path import Step, beams_of, counted, is_reached, path_to, score_of
from treetop.ranking.ranker import Ranker
from treetop.runtime import Runtime
from treetop.settings.parts import Analyser

MAX_LABELS_OF_NODE = 3
PECOS_ANALYZER = Analyser()


@dataclass(frozen=True)
class Member:
    """A model, its features of the document, and its weight in the ensemble (1 outside of one)."""

    model: Model
    X: Features
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
    document: Any,
    names: Sequence[Any] | None,
    runtime: Runtime,
    *,
    k: int = 5,
    words: int = 20,
    neighbours: int = 3,
) -> list[Explanation]:
    """Explain the labels `names` of a document, or its best `k` labels.

    `document` is a text, or a matrix of one row if the model was trained on a matrix. At most `words`
    words and `neighbours` training documents are listed.
    """
    text = document if isinstance(document, str) else None
    X = model.features([document] if text is not None else document, runtime)
    members = list(members_of(model, X, neighbours))
    if names is None:
        best = model.scores_from(X, k, runtime)
        names = model.classes[best.indices[: best.indptr[1]]].tolist()
    labels = columns_of(names, model.vocabulary).tolist()
    explanations = [explain_label(members, text, label, words) for label in labels]
    if isinstance(model, EnsembleModel) and model.combine != "average":
        # These ways to combine members depend on the scores of all labels.
        scores = model.scores_from(X, len(model.classes), runtime).toarray()[0, labels].tolist()
        return [replace(one, score=score) for one, score in zip(explanations, scores, strict=True)]
    return explanations


def members_of(model: Predictor, X: Any, neighbours: int, weight: float = 1.0) -> Iterator[Member]:
    """The models of an ensemble, or the model itself; `X` is what `model.features` returned."""
    if isinstance(model, EnsembleModel):
        for member, own, share in zip(model.members, X, model.weights, strict=True):
            yield from members_of(member, own, neighbours, weight * share / sum(model.weights))
        return
    model = cast(Model, model)
    if X.rows != 1:
        raise TreetopError(f"explain takes one document, not {X.rows}")
    beams = [beams_of(ranker, X) for ranker in model.rankers]
    documents = model.documents if neighbours else None
    similar = [] if documents is None else documents.nearest(X, neighbours)
    yield Member(model, X, weight, beams, similar)


def explain_label(members: Sequence[Member], text: str | None, label: int, words: int) -> Explanation:
    """Explain the score of one label.

    Scores and parts are means over all trees. A label that beam search reaches in none of them is not
    predicted: its score is 0, and the parts are those it would have had.
    """
    traced = [paths_of(member, label) for member in members]
    reached = any(one.path.reached for paths in traced for one in paths)
    grams, encoder, bias, raw_score, score = Contributions(), 0.0, 0.0, 0.0, 0.0
    for member, paths in zip(members, traced, strict=True):
        values = np.zeros(member.X.sparse.indices.size)
        for one in paths:
            score += one.weight * one.path.score * reached
            raw_score += one.weight * one.path.raw_score
            encoder += one.weight * one.encoder
            bias += one.weight * one.bias
            values += one.weight * one.words
        add_contributions(grams, member, text, values)
    largest = grams.largest(text, words)
    return Explanation(
        label=str(members[0].model.classes[label]),
        score=score,
        words=largest,
        other_words=grams.total - sum(word.value for word in largest),
        encoder=encoder,
        bias=bias,
        raw_score=raw_score,
        paths=[one.path for paths in traced for one in paths],
        neighbours=[
            neighbour_of(member.model, document, similarity, label)
            for member in members
            for document, similarity in member.similar
        ],
    )


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


def add_contributions(
    grams: Contributions, member: Member, text: str | None, values: np.ndarray
) -> None:
    """Add the values (float64, one per feature of the document) to the n-grams of the features.

    A model that counts words attributes the values of its character n-grams to words too.
    """
    features, tfidf = member.X.sparse.indices, member.model.feature_map.words
    own = Contributions()
    for at in np.flatnonzero(values).tolist():
        feature, value = int(features[at]), float(values[at])
        if tfidf is None or text is None:
            own.add(Gram(f"feature {feature}"), value, 0)
            continue
        analyzer = analyzer_of(tfidf, feature)
        gram = Gram(tfidf.feature_name(feature), analyzer.unit, analyzer.lowercase)
        own.add(gram, value, len(text) if analyzer.first is None else analyzer.first)
    if text is not None and isinstance(tfidf, Tfidf) and counts_words(tfidf):
        own = attribute_to_words(text, own)
    for gram, value in own.values.items():
        grams.add(gram, value, own.reach[gram])


def counts_words(tfidf: Tfidf) -> bool:
    """Whether any analyzer counts words."""
    return any(fitted.analyser.unit == "word" for fitted in tfidf.fitted)


def analyzer_of(tfidf: Any, feature: int) -> Analyser:
    """The analyzer that counts a feature; PECOS's vectorizer counts words."""
    for fitted in getattr(tfidf, "fitted", ()):
        if feature < fitted.features:
            analyzer: Analyser = fitted.analyser
            return analyzer
        feature -= fitted.features
    return PECOS_ANALYZER


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
        labels=[str(model.classes[label]) for label in below[order]],
        words=float(step.words.sum(dtype=np.float64)),
        encoder=step.encoder,
        bias=step.bias,
    )


def neighbour_of(model: Model, document: int, similarity: float, label: int) -> Neighbour:
    """A training document by its number."""
    assert model.documents is not None
    labels = model.documents.labels_of(document)
    names = [str(model.classes[number]) for number in labels]
    text = model.documents.text_of(document)
    return Neighbour(document, similarity, text, names, label in labels)
