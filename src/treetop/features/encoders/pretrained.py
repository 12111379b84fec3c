"""Models of the transformers library: read and checked."""

from __future__ import annotations

from typing import Any

from torch import float32, manual_seed, nn, random
from transformers import AutoConfig, AutoModel, AutoModelForTextEncoding
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    MODEL_FOR_TEXT_ENCODING_MAPPING_NAMES,
)

from treetop.errors import TreetopError
from treetop.features.encoders.sources import explaining

# What architectures call the share of values they leave out at random.
DROPOUTS = (
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "hidden_dropout",
    "attention_dropout",
    "dropout",
    "dropout_rate",
    "embedding_dropout",
    "mlp_dropout",
)


def load_transformer(source: str, dropout: float) -> nn.Module:
    """The encoder in float32, with this dropout."""
    with explaining(source):
        config = AutoConfig.from_pretrained(source)
    check_is_encoder(source, config)
    for name in DROPOUTS:
        if isinstance(getattr(config, name, None), float | int):
            setattr(config, name, dropout)
    family: Any = AutoModel
    if config.model_type not in MODEL_FOR_MASKED_LM_MAPPING_NAMES and config.model_type != "xlnet":
        family = AutoModelForTextEncoding  # of the T5 family only the encoder
    # Weights that a checkpoint lacks, such as a pooler's, are drawn at random: always the same.
    with explaining(source), random.fork_rng(devices=[]):
        manual_seed(0)
        return use_fused_attention(family.from_pretrained(source, config=config, dtype=float32))


def use_fused_attention(model: nn.Module) -> nn.Module:
    """Exchange MPNet's attention; other families have theirs from the library."""
    config: Any = model.config
    if config.model_type == "mpnet":
        from treetop.features.encoders import mpnet

        mpnet.fuse(model)
    return model


def check_is_encoder(source: str, config: Any) -> None:
    """Raise unless the architecture reads a text from both sides, or is XLNet."""
    kind = config.model_type
    alone = kind in MODEL_FOR_TEXT_ENCODING_MAPPING_NAMES
    if alone or kind == "xlnet":
        return
    if kind in MODEL_FOR_MASKED_LM_MAPPING_NAMES and not config.is_encoder_decoder:
        return
    what = "a decoder" if kind in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES else "not a text encoder"
    if config.is_encoder_decoder:
        what = "an encoder and decoder in one"
    raise TreetopError(
        f"encoder {source!r} is {what} ({kind}): choose an encoder such as BERT, RoBERTa, MPNet or T5's"
    )
