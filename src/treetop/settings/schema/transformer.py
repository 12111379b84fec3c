"""Settings of XRTransformer: those of XRLinear, the encoder and its fine-tuning."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from treetop.fields import documented
from treetop.settings.notation import parse_budget, parse_first_tree
from treetop.settings.schema.linear import (
    BRANCHING,
    LARGEST_FACTOR,
    LEAST_FACTOR,
    PRUNE_BELOW,
    LinearSettings,
)

encoder_half = partial(documented, section="Encoder")
refined = partial(documented, section="Label tree and rankers: defaults that differ from XRLinear's")
tuning = partial(documented, section="Fine-tuning, level by level on a preliminary tree")
held_out = partial(documented, section="Validation")


@dataclass(frozen=True, kw_only=True)
class TransformerSettings(LinearSettings):
    """Settings of XRTransformer. Its final trees and rankers use those of XRLinear."""

    encoder: str = encoder_half(
        "minilm",
        "Text encoder: a short name such as minilm, a model name on the Hugging Face Hub, a folder, or "
        "a file of word vectors.",
    )
    pooling: str = encoder_half(
        "auto",
        "How token vectors are pooled into one vector: mean, cls, pooler or last. By default (auto), "
        "as the encoder's own files specify.",
        choices=("auto", "mean", "cls", "pooler", "last"),
    )
    max_length: int = encoder_half(
        256,
        "Maximum number of tokens per text; the rest is truncated for the encoder, while the TF-IDF "
        "features use the whole text. A smaller value is faster.",
        at_least=1,
    )
    words: bool = encoder_half(
        True,
        "Use TF-IDF features alongside the encoder in the rankers. false uses the encoder alone, which "
        "is usually less precise.",
    )
    dense_weight: float = encoder_half(
        0.35,
        "Weight of the encoder relative to the TF-IDF features: the length of its half of Φ_cat, 1 in "
        "the paper. With a small value the model relies more on TF-IDF.",
        above=0,
        at_least=LEAST_FACTOR,
        below=LARGEST_FACTOR,
    )
    center: bool = encoder_half(
        True,
        "Subtract the mean of all document vectors from the encoder's half of Φ_cat. The paper does "
        "not.",
    )
    head_share: float = encoder_half(
        0.15,
        "Share of the fine-tuned classification head in the score of each label; the rankers "
        "contribute the rest. 0 in the paper. Set it to 0 if fine-tuning is very short.",
        at_least=0,
        below=1,
    )
    fine_tune: bool = encoder_half(
        True,
        "Fine-tune the encoder. false keeps it frozen (Pre-Trained in the paper): much faster, and "
        "practical without a GPU.",
    )
    branching: int = refined(
        64,
        BRANCHING,
        at_least=2,
    )
    prune_below: float = refined(
        0.07,
        PRUNE_BELOW,
        at_least=0,
    )
    first_tree: str = tuning(
        "auto",
        "Level sizes of the preliminary tree, such as 16-256-L, on which the encoder is fine-tuned. "
        "Without the final L, the encoder is not fine-tuned on the labels themselves. By default "
        "(auto), each level has at most 32 times as many nodes as the one above.",
        parse=parse_first_tree,
    )
    largest_level: int = tuning(
        32_768,
        "Maximum number of nodes of a level that is fine-tuned; larger levels are left to the rankers. "
        "Lower it if the GPU runs out of memory.",
        at_least=1,
    )
    budget: str = tuning(
        "5 epochs",
        "Length of fine-tuning in epochs, samples or steps: a total such as 5 epochs, or one figure "
        "per level such as 300/400/600 steps. A total is divided so that finer levels get more.",
        parse=parse_budget,
    )
    batch: int = tuning(
        256,
        "Batch size: number of documents per step. A batch that does not fit into memory is split "
        "automatically.",
        at_least=1,
    )
    learning_rate: float | None = tuning(
        None,
        "Peak learning rate of the encoder. By default, 2e-4 for a width of up to 384, falling with "
        "the square of the width (5e-5 for BERT-base).",
        above=0,
    )
    head_learning_rate: float | None = tuning(
        2e-3,
        "Peak learning rate of the classification head. null uses that of the encoder, as in the "
        "paper.",
        above=0,
    )
    warmup: float = tuning(
        0.1,
        "Fraction of each level's steps during which the learning rate rises; it then falls linearly.",
        at_least=0,
        below=1,
    )
    weight_decay: float = tuning(0.0, "Weight decay of the encoder's weight matrices.", at_least=0)
    clip: float = tuning(1.0, "Maximum norm of the gradient; larger gradients are clipped.", above=0)
    dropout: float = tuning(
        0.1, "Dropout probability in the encoder and the classification head.", at_least=0, below=1
    )
    tune_loss: str = tuning(
        "squared-hinge",
        "Loss of fine-tuning: squared-hinge, hinge or bce (binary cross-entropy).",
        choices=("squared-hinge", "hinge", "bce"),
    )
    tune_lambda: float = tuning(
        0.1,
        "Strength of the L2 regularization of the classification head, λ in the paper.",
        above=0,
        at_least=LEAST_FACTOR,
        below=LARGEST_FACTOR,
    )
    tune_alpha: float = tuning(
        0.3,
        "Weight of negative examples in fine-tuning, α in the paper.",
        above=0,
        at_least=LEAST_FACTOR,
        below=LARGEST_FACTOR,
    )
    tune_cost_sensitive: bool = tuning(
        True,
        "Weight the positive examples of fine-tuning by R̂, as in the paper. false gives each of them "
        "a weight of 1.",
    )
    tune_shortlist: str = tuning(
        "all",
        "Nodes that a document is trained on: all nodes of the level, or beam, as in the paper: the "
        "children of its predicted and true parents. Use beam for levels of very many nodes.",
        choices=("beam", "all"),
    )
    tune_beam: int = tuning(
        10,
        "With tune_shortlist=beam, number of nodes predicted per document whose children are "
        "shortlisted.",
        at_least=1,
    )
    matcher_passes: int = tuning(
        5,
        "With tune_shortlist=beam, maximum number of solver passes of the rankers that predict these "
        "nodes.",
        at_least=1,
    )
    bootstrap: bool = tuning(
        True,
        "Initialize the classification head of each level but the first with the solution of the "
        "linear solver, as in the paper. false starts from zeros.",
    )
    bootstrap_first: bool = tuning(
        False,
        "Initialize the classification head of the first level in the same way, on the vectors of the "
        "encoder before fine-tuning.",
    )
    validation: float = held_out(
        0.0,
        "Fraction of the training documents to hold out for validation when none are passed to fit. "
        "With validation, each level keeps the weights with the best P@1.",
        at_least=0,
        below=1,
    )
    validate_every: float = held_out(
        0.2, "Interval between validations, as a fraction of a level's steps.", above=0
    )
    patience: int = held_out(
        0,
        "Early stopping: end a level after this many validations without a better P@1. 0 disables it.",
        at_least=0,
    )
