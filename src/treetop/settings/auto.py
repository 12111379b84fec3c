"""Data-dependent defaults: pure functions from counts of the data to settings."""

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
from treetop.settings.notation import (
    at_level,
    parse_budget,
    parse_first_tree,
    parse_tree,
    parse_warmup,
    tree_sizes,
    written_tree,
)
from treetop.settings.parts import RankerSettings
from treetop.settings.schema import LinearSettings, TransformerSettings

Kind = TypeVar("Kind", bound=LinearSettings)

# Defaults of `ngrams` by the median length of the texts in characters. Trees trained on different
# features make different errors. For titles, where every letter counts, one tree uses words and word
# pairs, one words and character n-grams, and one character n-grams. Longer texts state their subject at
# the beginning, so two of the trees use n-grams of the beginning as separate features.
TITLES = "word:1-2|word:1+char:4|char:4"
SHORT_TEXTS = "word:1-2|word:1+word:1@60|word:1-2+word:1-2@60"
LONG_TEXTS = "word:1-2+word:1-2@300|word:1-2|word:1-2@300+word:1-2@800"
SHORT, LONG = 150, 600
SAMPLED_TEXTS = 1000
# λ for positive examples with a mean weight of 1.
LAMBDA = 0.35
# With k labels per document and E[k²] / E[k]² of at least this, R̂ would underfit documents that have
# many labels.
UNEVEN = 4.0
# With more labels than this, weights are stored in fewer bits, and training does not calibrate.
MANY_LABELS = 100_000
# With even more, the beam is wider and rankers have a bias: weights are then fewer, and precision is
# higher. On generated problems with Amazon-670K's counts, both lower P@1 at 200,000 labels by 0.2 and
# change P@5 by less than 0.1; at 350,000 they raise P@5 by 0.5, at 670,000 by 1.3.
VERY_MANY_LABELS, WIDE_BEAM = 250_000, 20
# Maximum number of children of a node of an automatic preliminary tree.
FIRST_BRANCHING = 32
# Ratio between the steps of one level and those of the level above, as in 300/400/600.
STEPS_GROWTH = math.sqrt(2)
# Default learning rate, and the width up to which it applies; wider encoders need a smaller one.
LEARNING_RATE, LEARNING_RATE_WIDTH = 2e-4, 384


def with_ngrams(settings: Kind, texts: Iterable[str]) -> tuple[Kind, Iterable[str]]:
    """Resolve ``ngrams="auto"`` by the median length of the first texts.

    Returns the settings and all the texts: an iterator is returned as a new one that yields them all.
    """
    if settings.ngrams != "auto":
        return settings, texts
    stream = iter(texts)
    first = list(islice(stream, SAMPLED_TEXTS))
    length = median([len(text) for text in first if isinstance(text, str)] or [0])
    chosen = TITLES if length < SHORT else SHORT_TEXTS if length < LONG else LONG_TEXTS
    return replace(settings, ngrams=chosen), chain(first, stream) if stream is texts else texts


def with_costs(settings: Kind, Y: sp.csr_matrix, weights: np.ndarray | None) -> Kind:
    """Resolve `cost_sensitive`, `lambda_` and `alpha` by the number of labels per document.

    R̂ gives the positive labels of a document a total weight of 1. The weight of each, and with it the
    best λ, is therefore inversely proportional to their number. Where a few documents have most of the
    labels, these labels would get almost no weight, and cost-sensitive learning is disabled.
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


def for_size(settings: Kind, labels: int) -> Kind:
    """Resolve `weight_type`, `beam` and, if there are very many labels, `bias` by their number."""
    very_many = labels > VERY_MANY_LABELS
    weight_type, beam, bias = settings.weight_type, settings.beam, settings.bias
    if weight_type == "auto":
        weight_type = "bfloat16" if labels > MANY_LABELS else "float32"
    if beam is None:
        beam = WIDE_BEAM if very_many else RankerSettings.beam
    if bias is None and very_many:
        bias = 1.0
    return replace(settings, weight_type=weight_type, beam=beam, bias=bias)


def with_calibration(settings: Kind, labels: int) -> Kind:
    """Leave calibration out where a second set of rankers would take too much time and memory."""
    return replace(settings, calibration=settings.calibration and labels <= MANY_LABELS)


def is_flat(settings: LinearSettings, labels: int) -> bool:
    """Whether the tree over `labels` labels has no clusters."""
    if settings.tree == "auto" and labels <= settings.flat_labels:
        return True
    return settings.tree == "flat" or labels == 1


def refined_sizes(settings: LinearSettings, labels: int) -> list[int] | None:
    """Return the sizes K[1] … K[D-1] of the refined trees; None if plain k-means determines them."""
    if is_flat(settings, labels):
        return []
    if settings.tree != "auto":
        return tree_sizes(settings.tree, labels)
    return sizes_by_branching(labels, settings.branching, settings.leaf) if settings.balanced else None


def sizes_by_branching(labels: int, branching: int, leaf: int) -> list[int]:
    """Return K[1] … K[D-1] with at most `leaf` labels per cluster and `branching` children per node.

    A first level of two nodes is left out: nearly every document reaches both, so it takes as long as
    another level and helps no search.
    """
    sizes: list[int] = []
    nodes = -(-labels // leaf)
    while nodes > 1:
        sizes.insert(0, nodes)
        nodes = -(-nodes // branching) if nodes > branching else 1
    return sizes[1:] if len(sizes) > 1 and sizes[0] == 2 else sizes


def first_sizes(spec: str, labels: int, largest: int) -> tuple[list[int], int]:
    """Return the sizes K[1] … K[D-1] of the preliminary tree and the number of fine-tuned levels.

    ``16-256-L`` has three levels, all of them fine-tuned. Without the L, the level of the labels is not
    fine-tuned, nor is any level of more than `largest` nodes. ``auto`` multiplies the number of nodes
    by the same factor at every level, at most 32.
    """
    with_labels = True
    if spec == "auto":
        depth = max(1, math.ceil(math.log(labels) / math.log(FIRST_BRANCHING) - 1e-9))
        sizes = [round(labels ** (level / depth)) for level in range(1, depth)]
    else:
        written = parse_first_tree(spec)
        sizes = list(written.sizes) if written.pecos is None else written.pecos.sizes(labels)
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


def check_levels(settings: LinearSettings, labels: int) -> None:
    """Raise unless the levels of all trees and all values by level fit this number of labels.

    Called before any work starts: the refined trees are built after all fine-tuning.
    """
    sizes = refined_sizes(settings, labels)
    if sizes is not None:
        settings.ranker().by_level(len(sizes) + 1)
    if isinstance(settings, TransformerSettings) and settings.fine_tune:
        _, levels = first_sizes(settings.first_tree, labels, settings.largest_level)
        steps = steps_by_level(settings.budget, levels, documents=1, batch=1)
        warmup_steps(settings.warmup, steps)
        at_level("tune_beam", settings.tune_beam, levels, levels)


def steps_by_level(budget: str, levels: int, documents: int, batch: int) -> list[int]:
    """Return the number of steps of levels 1 … `levels`; a single figure is divided among them."""
    figures, unit, repeated = parse_budget(budget)
    if repeated:
        figures = (figures + figures[-1:] * levels)[:levels]
    batch = min(batch, documents)  # as in `Batches`
    steps_per_unit = {"steps": 1.0, "samples": 1 / batch, "epochs": documents / batch}[unit]
    if len(figures) == 1 and levels > 1:
        shares = [STEPS_GROWTH**level for level in range(levels)]
        figures = [figures[0] * share / sum(shares) for share in shares]
    if len(figures) != levels:
        raise TreetopError(
            f"budget {budget!r} has {len(figures)} parts, but {levels} levels are fine-tuned: "
            "give one figure per level, or one in total"
        )
    steps = [max(1, round(figure * steps_per_unit)) for figure in figures]
    if unit == "steps":  # a total is kept exactly
        steps[-1] = max(1, steps[-1] + round(sum(figures)) - sum(steps))
    return steps


def warmup_steps(warmup: float | str, steps: Sequence[int]) -> list[int]:
    """Return the number of steps in which the learning rate rises, for each fine-tuned level."""
    figures, unit = parse_warmup(warmup)
    listed = [
        float(at_level("warmup", "/".join(figures), level, len(steps)))
        for level in range(1, len(steps) + 1)
    ]
    if unit == "steps":
        return [max(1, round(figure)) for figure in listed]
    return [max(1, round(figure * own)) for figure, own in zip(listed, steps, strict=True)]


def learning_rates(rate: float | None, head_rate: float | None, width: int) -> tuple[float, float]:
    """Return the peak learning rates of the encoder and of W.

    The default for the encoder falls with the square of its width.
    """
    if rate is None:
        rate = LEARNING_RATE * (LEARNING_RATE_WIDTH / max(width, LEARNING_RATE_WIDTH)) ** 2
    return rate, rate if head_rate is None else head_rate


def for_depth(settings: RankerSettings, depth: int) -> RankerSettings:
    """Resolve `bias` and `score_transform` by the depth of the tree."""
    default_bias, default_transform = (1.0, "sigmoid") if depth == 1 else (0.0, "l3-ordered")
    bias = default_bias if settings.bias is None else settings.bias
    transform = default_transform if settings.score_transform == "auto" else settings.score_transform
    return replace(settings, bias=bias, score_transform=transform)


def as_trained(settings: Kind, ranker: RankerSettings, levels: Sequence[int]) -> Kind:
    """Record in the settings what was resolved for the refined trees, of these level sizes."""
    tree = settings.tree
    open_sizes = tree == "auto" and (settings.balanced or len(levels) == 1)
    if open_sizes or parse_tree(tree).pecos is not None:
        tree = written_tree(levels)
    return replace(settings, tree=tree, bias=ranker.bias, score_transform=ranker.score_transform)


def as_tuned(settings: TransformerSettings, width: int, levels: Sequence[int]) -> TransformerSettings:
    """Record in the settings what was resolved for fine-tuning on a tree of these level sizes."""
    rate, head_rate = learning_rates(settings.learning_rate, settings.head_learning_rate, width)
    first = settings.first_tree
    if first == "auto" or parse_first_tree(first).pecos is not None:
        first = written_tree(levels)
    return replace(settings, learning_rate=rate, head_learning_rate=head_rate, first_tree=first)
