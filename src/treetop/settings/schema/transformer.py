"""Settings of XRTransformer: those of XRLinear, the encoder and its fine-tuning."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from treetop.fields import documented
from treetop.settings.notation import (
    numbers_by_level,
    parse_budget,
    parse_first_tree,
    parse_warmup,
    warmup_fractions,
)
from treetop.settings.schema.encoder import EncoderSettings
from treetop.settings.schema.linear import LARGEST_FACTOR, LEAST_FACTOR, SCORE_TRANSFORMS

tuning = partial(documented, section="Fine-tuning, level by level on a preliminary tree")
bootstrapping = partial(
    documented, section="Bootstrapping: where the classification head of a level starts"
)
matching = partial(documented, section="Rankers that predict the shortlists, with tune_shortlist=beam")
held_out = partial(documented, section="Validation")

WEIGHTINGS = ("relevance", "counts", "equal")


@dataclass(frozen=True, kw_only=True)
class TransformerSettings(EncoderSettings):
    """Settings of XRTransformer."""

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
    tuned_layers: int | None = tuning(
        None,
        "Number of upper layers of the encoder to fine-tune. The layers below and the embeddings of "
        "words keep their weights, and what they compute is stored in a temporary file, so that a step "
        "computes the upper layers only. By default, all layers learn.",
        at_least=1,
    )
    budget: str = tuning(
        "5 epochs",
        "Length of fine-tuning in epochs, samples or steps: a total such as 5 epochs, or one figure "
        "per level such as 300/400/600 steps, or 500/... steps for 500 on each. A total is divided "
        "so that finer levels get more.",
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
    warmup: float | str = tuning(
        0.1,
        "Fraction of each level's steps during which the learning rate rises; it then falls linearly. "
        "Or one per level such as 0.2/0.1/0.1, or in steps such as 100/100/200 steps.",
        at_least=0,
        below=1,
        by_level=warmup_fractions,
        parse=parse_warmup,
    )
    weight_decay: float = tuning(0.0, "Weight decay of the encoder's weight matrices.", at_least=0)
    clip: float = tuning(1.0, "Maximum norm of the gradient; larger gradients are clipped.", above=0)
    clip_separately: bool = tuning(
        False,
        "Clip the gradients of the encoder and of the classification head separately, as PECOS does.",
    )
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
    tune_weighting: str = tuning(
        "relevance",
        "Weights of fine-tuning's loss: relevance, as in the paper (tune_cost_sensitive, tune_alpha, "
        "tune_lambda); counts, as PECOS's weighted-squared-hinge (a positive weighs as much as the "
        "document has labels below it, a negative 1; the mean over the candidates, without λ); or "
        "equal, as PECOS's squared-hinge (the same with a weight of 1).",
        choices=WEIGHTINGS,
    )
    tune_shortlist: str = tuning(
        "all",
        "Nodes that a document is trained on: all nodes of the level; beam, as in the paper: the "
        "children of its predicted and true parents; or true, those of its true parents alone. Use "
        "beam for levels of very many nodes.",
        choices=("beam", "all", "true"),
    )
    tune_beam: int | str = tuning(
        10,
        "With tune_shortlist=beam, number of nodes predicted per document whose children are "
        "shortlisted; or one number per fine-tuned level such as 20/20/20.",
        at_least=1,
        by_level=numbers_by_level("tune_beam", int),
    )
    bootstrap: bool = bootstrapping(
        True,
        "Initialize the classification head of each level but the first with the solution of the "
        "linear solver, as in the paper. false starts from zeros.",
    )
    bootstrap_first: bool = bootstrapping(
        False,
        "Initialize the classification head of the first level in the same way, on the vectors of the "
        "encoder before fine-tuning.",
    )
    bootstrap_weighting: str | None = bootstrapping(
        None,
        "Weights of the solver's loss: relevance, counts or equal. By default, that of tune_weighting.",
        choices=WEIGHTINGS,
    )
    bootstrap_lambda: float | None = bootstrapping(
        None,
        "Strength of the L2 regularization of the solver. By default, tune_lambda.",
        above=0,
        at_least=LEAST_FACTOR,
        below=LARGEST_FACTOR,
    )
    bootstrap_alpha: float | None = bootstrapping(
        None,
        "Weight of negative examples. By default, tune_alpha, or 1 if the weighting is not relevance.",
        above=0,
        at_least=LEAST_FACTOR,
        below=LARGEST_FACTOR,
    )
    bootstrap_passes: int | None = bootstrapping(
        None, "Maximum number of solver passes. By default, those of the rankers (passes).", at_least=1
    )
    bootstrap_tolerance: float | None = bootstrapping(
        None, "Stopping criterion of the solver. By default, that of the rankers (tolerance).", above=0
    )
    matcher_passes: int = matching(
        5,
        "With tune_shortlist=beam, maximum number of solver passes of the rankers that predict these "
        "nodes.",
        at_least=1,
    )
    matcher_tolerance: float | None = matching(
        None, "Stopping criterion of their solver. By default, that of the rankers.", above=0
    )
    matcher_lambda: float | None = matching(
        None,
        "Strength of their L2 regularization. By default, that of the rankers of the first level.",
        above=0,
        at_least=LEAST_FACTOR,
        below=LARGEST_FACTOR,
    )
    matcher_alpha: float | None = matching(
        None,
        "Weight of negative examples. By default, that of the rankers of the first level.",
        above=0,
        at_least=LEAST_FACTOR,
        below=LARGEST_FACTOR,
    )
    matcher_cost_sensitive: bool | None = matching(
        None,
        "Weight the positive labels of each document by R̂. By default, as for the rankers (PECOS's "
        "cost_sensitive_ranker concerns these rankers alone).",
    )
    matcher_bias: float | None = matching(
        None, "Value of their constant feature. By default, that of the rankers.", at_least=0
    )
    matcher_prune_below: float | None = matching(
        None, "Drop their weights below this absolute value. By default, prune_below.", at_least=0
    )
    matcher_score_transform: str | None = matching(
        None,
        "Function that maps their raw scores to factors. By default, that of the rankers.",
        choices=SCORE_TRANSFORMS,
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
