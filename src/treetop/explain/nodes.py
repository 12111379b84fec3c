"""Names of the nodes of a label tree: their typical words and most frequent labels."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from treetop.features.words.tfidf import Tfidf
from treetop.labels.types import Label, plain_label
from treetop.model.model import Model
from treetop.ranking.combining import largest
from treetop.ranking.path import weights_at
from treetop.ranking.ranker import Ranker

# Models with more rows of weights are not searched for words: it would take minutes.
MOST_ROWS = 50_000_000
# Features looked at per word that is named: a word may be a feature of several analyzers.
NAMES_PER_WORD = 3


@dataclass(frozen=True)
class NamedNode:
    """A node above the labels. `labels` are the most frequent ones below it, with their documents."""

    size: int  # labels below it
    labels: tuple[tuple[Label, int], ...]
    words: tuple[str, ...]
    children: tuple[NamedNode, ...]


def named_tree(
    model: Model, ranker: Ranker, *, most_nodes: int = 400, labels: int = 40, words: int = 6
) -> NamedNode:
    """Name the nodes of a label tree from the root down to the level that exceeds `most_nodes`."""
    sizes = ranker.tree.sizes[:-1]
    depth = int(np.searchsorted(np.cumsum(sizes), most_nodes, side="right"))
    typical = [typical_words(model, ranker, level, words) for level in range(1, depth + 1)]
    first_of = first_labels(ranker)

    def node(level: int, number: int) -> NamedNode:
        pointers = ranker.tree.child_ptr
        below = first_of[level][number : number + 2]
        inside = ranker.tree.label_of[below[0] : below[1]]
        counts = np.asarray(model.label_counts)[inside]
        best = largest(counts, labels)
        first, last = pointers[level][number : number + 2].tolist()
        return NamedNode(
            inside.size,
            tuple((plain_label(model.classes[inside[at]]), int(counts[at])) for at in best.tolist()),
            typical[level - 1][number] if level else (),
            tuple(node(level + 1, child) for child in range(first, last)) if level < depth else (),
        )

    return node(0, 0)


def first_labels(ranker: Ranker) -> list[np.ndarray]:
    """Where the labels below each node begin in `label_of`, and the end, by level from the root."""
    edges = [np.arange(ranker.tree.label_of.size + 1)]
    for pointers in reversed(ranker.tree.child_ptr):
        edges.append(edges[-1][pointers])
    return edges[::-1]


def words_of_labels(
    model: Model, ranker: Ranker, labels: int = 30, words: int = 6
) -> list[tuple[Label, int, tuple[str, ...]]]:
    """The most frequent labels with their training documents and typical words."""
    frequent = largest(np.asarray(model.label_counts), labels)
    nodes = ranker.tree.node_of[frequent]
    typical = typical_words(model, ranker, ranker.tree.depth, words, nodes)
    return [
        (plain_label(model.classes[label]), int(model.label_counts[label]), typical[node])
        for label, node in zip(frequent.tolist(), nodes.tolist(), strict=True)
    ]


def typical_words(
    model: Model, ranker: Ranker, level: int, count: int, chosen: np.ndarray | None = None
) -> list[tuple[str, ...]]:
    """The words with the largest positive weights of each node of a level, or of the chosen ones.

    None are known of an encoder, of columns without names, and of models that are too large.
    """
    nodes = ranker.tree.sizes[level - 1]
    wanted = set(range(nodes) if chosen is None else chosen.tolist())
    readable = model.feature_map.words is not None or model.feature_names is not None
    rows = ranker.weights.rows
    if not readable or not model.widths[0] or len(rows) > MOST_ROWS:
        return [()] * nodes
    name = (
        model.feature_name if model.feature_map.words is None else model.feature_map.words.feature_name
    )
    clusters, starts = np.asarray(rows[:, 0]), np.asarray(ranker.weights.starts[:, 0])
    first = int(ranker.weights.level_ptr[level - 1])
    usual = usual_values(model)
    words: list[tuple[str, ...]] = [()] * nodes
    for parent, (start, end) in enumerate(pairwise(ranker.tree.child_ptr[level - 1].tolist())):
        if wanted.isdisjoint(range(start, end)):
            continue
        own = np.flatnonzero(clusters == first + parent)
        features = (np.searchsorted(starts, own, side="right") - 1).astype(np.int32)
        for node in wanted.intersection(range(start, end)):
            weights = weights_at(ranker.weights, features, first + parent, node - start)
            best = largest(weights * usual[features], NAMES_PER_WORD * count)
            names = map(name, features[best[weights[best] > 0]].tolist())
            words[node] = tuple(dict.fromkeys(names))[:count]  # several analyzers share names
    return words


def usual_values(model: Model) -> np.ndarray:
    """How large the value of each sparse feature is where it occurs: idf, or 1; float32."""
    words = model.feature_map.words
    if not isinstance(words, Tfidf):
        return np.ones(model.widths[0], np.float32)
    return np.concatenate([fitted.idf for fitted in words.fitted]).astype(np.float32)
