"""Keyword arguments of the constructors, for editors and type checkers.

Written by `make docs` from `schema.py` and `Runtime`; do not edit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict


class LinearKeywords(TypedDict, total=False):
    """Of XRLinear."""

    ngrams: str
    min_df: int | float
    max_df: int | float
    max_features: int | None
    sublinear: bool
    stop_words: Sequence[str]
    lowercase: bool
    shortest_word: int
    tree: str
    flat_labels: int
    branching: int
    leaf: int
    balanced: bool
    label_features: str
    tree_features: int | None
    tree_passes: int
    trees: int
    loss: str
    lambda_: float | None
    alpha: float | None
    cost_sensitive: bool | None
    bias: float | None
    passes: int
    tolerance: float
    prune_below: float
    max_weights: int | None
    shortlist: str
    beam: int
    score_transform: str
    keep_documents: bool
    seed: int
    threads: int | None
    verbose: bool | int


class TransformerKeywords(LinearKeywords, total=False):
    """Of XRTransformer."""

    encoder: str
    pooling: str
    max_length: int
    words: bool
    dense_weight: float
    center: bool
    head_share: float
    fine_tune: bool
    first_tree: str
    largest_level: int
    budget: str
    batch: int
    learning_rate: float | None
    head_learning_rate: float | None
    warmup: float
    weight_decay: float
    clip: float
    dropout: float
    tune_loss: str
    tune_lambda: float
    tune_alpha: float
    tune_cost_sensitive: bool
    tune_shortlist: str
    tune_beam: int
    matcher_passes: int
    bootstrap: bool
    bootstrap_first: bool
    validation: float
    validate_every: float
    patience: int
    device: str
    precision: str
    cuda_graphs: bool
    fused_layers: bool
    fallback: bool
    checkpoint_minutes: float
    tensorboard: str | None
