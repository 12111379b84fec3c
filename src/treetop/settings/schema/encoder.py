"""Settings of the encoder and of the trees and rankers on its features."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from treetop.fields import documented
from treetop.settings.schema.linear import (
    BRANCHING,
    LARGEST_FACTOR,
    LEAST_FACTOR,
    PRUNE_BELOW,
    LinearSettings,
)

encoder_half = partial(documented, section="Encoder")
refined = partial(documented, section="Label tree and rankers: defaults that differ from XRLinear's")


@dataclass(frozen=True, kw_only=True)
class EncoderSettings(LinearSettings):
    """Settings of XRTransformer without fine-tuning. Its trees and rankers use those of XRLinear."""

    encoder: str = encoder_half(
        "minilm",
        "Text encoder: a short name such as minilm, a model name on the Hugging Face Hub, a folder, or "
        "a file of word vectors.",
    )
    pooling: str = encoder_half(
        "auto",
        "How token vectors are pooled into one vector: mean, cls, pooler, last, or summary (the tanh "
        "of the last token, XLNet's SequenceSummary). By default (auto), as the encoder's own files "
        "specify.",
        choices=("auto", "mean", "cls", "pooler", "last", "summary"),
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
