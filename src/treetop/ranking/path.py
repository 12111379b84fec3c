"""The path from the root to a label, with the parts of each node's score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from treetop.features.hybrid import Features
from treetop.kernels import lookup, transforms
from treetop.ranking.beam import SearchPlan, beam_search
from treetop.ranking.ranker import Ranker, score_of_levels
from treetop.ranking.scores import ScoreKind, score_kind
from treetop.ranking.weights import Weights


@dataclass(frozen=True)
class Step:
    """A node on the path. Its raw score is the sum of `words`, plus `encoder`, plus `bias`."""

    level: int
    node: int  # number within the level
    siblings: int  # including itself
    words: np.ndarray  # float32, contribution of each of the document's sparse features
    encoder: float
    bias: float
    raw: float  # Wᵀx + bias
    worth: float  # the raw score after the score transform


def path_to(ranker: Ranker, X: Features, label: int) -> list[Step]:
    """Return the nodes from the root to `label` for the single document in `X`."""
    node, nodes = int(ranker.tree.node_of[label]), []
    for level in range(ranker.tree.depth, 0, -1):
        nodes.append((level, node))
        node = int(np.searchsorted(ranker.tree.child_ptr[level - 1], node, side="right")) - 1
    kinds = kinds_of(ranker)
    return [step_at(ranker, X, level, node, kinds[level - 1]) for level, node in reversed(nodes)]


def kinds_of(ranker: Ranker) -> list[ScoreKind]:
    """Return the score transform of each level."""
    return [score_kind(at.score_transform) for at in ranker.settings.by_level(ranker.tree.depth)]


def beams_of(ranker: Ranker, X: Features) -> list[set[int]]:
    """Return the nodes that beam search keeps at each level above the labels, numbered by level."""
    beams, depth = [], ranker.tree.depth
    for level in range(1, depth):
        score = score_of_levels(ranker.settings, level, depth)
        widths = ranker.beams[:level]
        plan = SearchPlan(level, widths, int(widths[-1]), score)
        best = beam_search(ranker.weights, X, plan, threads=1)
        before = sum(ranker.tree.sizes[: level - 1])
        beams.append({int(node) - before for node in best.nodes[0, : best.counts[0]]})
    return beams


def is_reached(steps: list[Step], beams: list[set[int]]) -> bool:
    """Whether beam search reaches the label."""
    return all(step.node in beam for step, beam in zip(steps, beams, strict=False))


def step_at(ranker: Ranker, X: Features, level: int, node: int, kind: ScoreKind) -> Step:
    """Return the parts of the score of one node; `node` is its number within `level`."""
    weights = ranker.weights
    number = node + sum(ranker.tree.sizes[: level - 1])
    cluster = int(weights.parent_of[number]) + 1
    first, last = weights.child_ptr[cluster : cluster + 2].tolist()
    words = X.sparse.data * weights_at(weights, X.sparse.indices, cluster, number - first)
    columns = X.dense.shape[1]
    dense = weights.dense[first * columns : last * columns].reshape(columns, last - first)
    encoder = float(X.dense[0] @ dense[:, number - first]) if columns else 0.0
    bias = float(weights.biases[number])
    raw = float(words.sum(dtype=np.float64)) + encoder + bias
    worth, siblings = worth_of(raw, kind), last - first
    return Step(level, node, siblings, words, encoder=encoder, bias=bias, raw=raw, worth=worth)


def weights_at(weights: Weights, features: np.ndarray, cluster: int, child: int) -> np.ndarray:
    """Return the weight (float32) of each of `features` (int32) for one child of a cluster."""
    values = np.empty(features.size, np.float32)
    lookup.weights_of(*weights.for_search[:4], weights.child_ptr, features, cluster, child, values)
    return values


def worth_of(raw: float, kind: ScoreKind) -> float:
    """Apply the score transform: returns the factor, the summand or, for identity, the raw score."""
    if kind.kind in (transforms.HINGE, transforms.ORDERED):
        log = -(max(1.0 - raw, 0.0) ** kind.power)
        if kind.kind == transforms.ORDERED:
            log -= float(transforms.ORDER) / max(raw, 1.0)
    elif kind.kind == transforms.SIGMOID:
        log = -float(np.logaddexp(0.0, -raw))
    else:
        return raw
    return float(np.exp(log)) if kind.exponentiate else log


def score_of(steps: list[Step], ranker: Ranker) -> float:
    """Return the score that beam search gives to the label if it reaches it."""
    worths = [step.worth for step in counted(steps, ranker)]
    if ranker.score.exponentiate:
        return float(np.prod(worths))
    return float(np.sum(worths))


def counted(steps: list[Step], ranker: Ranker) -> list[Step]:
    """Return the steps whose scores make up that of the label: its own alone, if it is raw."""
    raw = ranker.score.combines[-1] == transforms.LAST
    return steps[-1:] if raw else steps
