"""What settings come to where they are left open: pure rules from counts of the data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain, islice
from statistics import median
from typing import TypeVar

import numpy as np
import scipy.sparse as sp

from treetop.errors import TreetopError
from treetop.settings.notation import parse_budget, parse_first_tree, tree_sizes, written_tree
from treetop.settings.parts import RankerSettings
from treetop.settings.schema import LinearSettings, TransformerSettings

Settings = TypeVar("Settings", bound=LinearSettings)

# What `ngrams` is by default, by the median length of the texts in characters. Trees trained on
# different features make different mistakes. In a title every letter counts: one tree sees words and
# pairs, one words and characters, one characters. What a longer text is about stands at its beginning,
# in a title if it has one: n-grams of that part are features of their own, which two of the trees see.
TITLES = "word:1-2|word:1+char:4|char:4"
SHORT_TEXTS = "word:1-2|word:1+word:1@60|word:1-2+word:1-2@60"
LONG_TEXTS = "word:1-2+word:1-2@300|word:1-2|word:1-2@300+word:1-2@800"
SHORT, LONG = 150, 600
TEXTS_LOOKED_AT = 1000
# λ that suits positives that weigh 1 on average.
LAMBDA = 0.35
# E[k²] / E[k]² of k labels per document from which on R̂ would hardly learn the long lists of labels.
UNEVEN = 4.0
# Maximum number of children of a node of an automatic preliminary tree.
FIRST_BRANCHING = 32
# Each level gets this many times the steps of the one above: 300/400/600 and the like.
STEPS_GROWTH = math.sqrt(2)
# Learning rate for an encoder of this width; what suits it ruins a wider one.
LEARNING_RATE, LEARNING_RATE_WIDTH = 2e-4, 384


def with_ngrams(settings: Settings, texts: Iterable[str]) -> tuple[Settings, Iterable[str]]:
    """Settings with `ngrams` decided by the length of the first texts, and the texts, all of them."""
    if settings.ngrams != "auto":
        return settings, texts
    stream = iter(texts)
    first = list(islice(stream, TEXTS_LOOKED_AT))
    length = median([len(text) for text in first if isinstance(text, str)] or [0])
    chosen = TITLES if length < SHORT else SHORT_TEXTS if length < LONG else LONG_TEXTS
    return replace(settings, ngrams=chosen), chain(first, stream) if stream is texts else texts


def with_costs(settings: Settings, Y: sp.csr_matrix, weights: np.ndarray | None) -> Settings:
    """Settings with cost_sensitive, lambda_ and alpha decided by the number of labels per document.

    R̂ gives all positives of a document a weight of 1 together. So what one of them weighs, and with it
    the λ that suits, falls with their number; and where few documents have most of the labels, these
    would count for next to nothing.
    """
    labels = np.diff(Y.indptr).astype(np.float64)
    weights = (labels > 0) * (1.0 if weights is None else weights)
    mean = square = 1.0
    if weights.any():
        mean, square = (np.average(labels**power, weights=weights) for power in (1, 2))
    sensitive, lambda_, alpha = settings.cost_sensitive, settings.lambda_, settings.alpha
    if sensitive is None:
        sensitive = bool(square / mean**2 < UNEVEN)
    if lambda_ is None:
        lambda_ = float(LAMBDA / mean) if sensitive else LAMBDA
    if alpha is None:
        alpha = 0.3 if sensitive else 1.0
    return replace(settings, cost_sensitive=sensitive, lambda_=lambda_, alpha=alpha)


def is_flat(settings: LinearSettings, labels: int) -> bool:
    """Whether the settings make a tree without clusters."""
    few = settings.tree == "auto" and labels <= settings.flat_labels
    return settings.tree == "flat" or few or labels == 1


def refined_sizes(settings: LinearSettings, labels: int) -> list[int] | None:
    """Level sizes K[1] … K[D-1] of the refined trees; None if k-means without balance decides them."""
    if is_flat(settings, labels):
        return []
    if settings.tree != "auto":
        return tree_sizes(settings.tree, labels)
    return sizes_by_branching(labels, settings.branching, settings.leaf) if settings.balanced else None


def sizes_by_branching(labels: int, branching: int, leaf: int) -> list[int]:
    """Level sizes K[1] … K[D-1] so that clusters hold at most `leaf` labels and nodes `branching`."""
    sizes: list[int] = []
    nodes = -(-labels // leaf)
    while nodes > 1:
        sizes.insert(0, nodes)
        nodes = -(-nodes // branching) if nodes > branching else 1
    return sizes


def first_sizes(spec: str, labels: int, largest: int) -> tuple[list[int], int]:
    """Sizes K[1] … K[D-1] of the preliminary tree, and how many levels are fine-tuned.

    ``16-256-L`` has three levels, all fine-tuned; without the L the labels are left to the rankers, as
    is every level of more than `largest` nodes. ``auto`` grows evenly, at most 32-fold per level.
    """
    with_labels = True
    if spec == "auto":
        depth = max(1, math.ceil(math.log(labels) / math.log(FIRST_BRANCHING) - 1e-9))
        sizes = [round(labels ** (level / depth)) for level in range(1, depth)]
    else:
        written = parse_first_tree(spec)
        sizes = list(written.sizes)
        with_labels = written.with_labels
        if not with_labels and sizes and sizes[-1] == labels:
            sizes, with_labels = sizes[:-1], True
    sizes = [size for size in sizes if 1 < size < labels]
    levels = [*sizes, labels] if with_labels or not sizes else sizes
    tuned = sum(size <= largest for size in levels)
    if tuned == 0:
        raise TreetopError(
            f"no level of first_tree {spec!r} has at most largest_level={largest:,} nodes: "
            "add a coarser level"
        )
    return sizes, tuned


def steps_by_level(budget: str, levels: int, documents: int, batch: int) -> list[int]:
    """Steps of levels 1 … `levels`. One figure is shared out; finer levels get more."""
    figures, unit = parse_budget(budget)
    batch = min(batch, documents)  # as `Batches` has it
    steps_per_unit = {"steps": 1.0, "samples": 1 / batch, "epochs": documents / batch}[unit]
    if len(figures) == 1:
        shares = [STEPS_GROWTH**level for level in range(levels)]
        figures = [figures[0] * share / sum(shares) for share in shares]
    if len(figures) != levels:
        raise TreetopError(
            f"budget {budget!r} has {len(figures)} parts, but {levels} levels are fine-tuned: "
            "give one figure per level, or one in total"
        )
    return [max(1, round(figure * steps_per_unit)) for figure in figures]


def learning_rates(rate: float | None, head_rate: float | None, width: int) -> tuple[float, float]:
    """Largest learning rates of the encoder and of W.

    The encoder's falls with the square of its width. W learns the same task whatever the encoder.
    """
    if rate is None:
        rate = LEARNING_RATE * (LEARNING_RATE_WIDTH / max(width, LEARNING_RATE_WIDTH)) ** 2
    return rate, rate if head_rate is None else head_rate


def for_depth(settings: RankerSettings, depth: int) -> RankerSettings:
    """Ranker settings with bias and score transform decided by the depth of their tree."""
    bias, transform = settings.bias, settings.score_transform
    if bias is None:
        bias = 1.0 if depth == 1 else 0.0
    if transform == "auto":
        transform = "sigmoid" if depth == 1 else "l3-ordered"
    return replace(settings, bias=bias, score_transform=transform)


def as_trained(settings: Settings, ranker: RankerSettings, levels: Sequence[int]) -> Settings:
    """Settings with what was decided for refined trees of these level sizes and their rankers."""
    tree = settings.tree
    if tree == "auto" and (settings.balanced or len(levels) == 1):
        tree = written_tree(levels)
    return replace(settings, tree=tree, bias=ranker.bias, score_transform=ranker.score_transform)


def as_tuned(settings: TransformerSettings, width: int, levels: Sequence[int]) -> TransformerSettings:
    """Settings with what was decided when an encoder of this width was fine-tuned on these levels."""
    rate, head_rate = learning_rates(settings.learning_rate, settings.head_learning_rate, width)
    first = written_tree(levels) if settings.first_tree == "auto" else settings.first_tree
    return replace(settings, learning_rate=rate, head_learning_rate=head_rate, first_tree=first)
