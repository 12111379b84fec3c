"""Reads models of the transformers library, and refuses those that are not text encoders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import device, float32, nn
from transformers import AutoConfig, AutoModel, AutoModelForTextEncoding
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    MODEL_FOR_TEXT_ENCODING_MAPPING_NAMES,
)

from treetop.errors import TreetopError
from treetop.features.encoders.library import LOCAL, WEIGHTS, explaining
from treetop.features.encoders.randomness import seeded
from treetop.features.encoders.untrusted import check_size

# The names that architectures give to their dropout rates.
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


def load_transformer(name: str, folder: Path, dropout: float) -> nn.Module:
    """The model in `folder`, in float32 and with this dropout; `name` is for error messages."""
    with explaining(name, folder):
        config = AutoConfig.from_pretrained(folder, **LOCAL)
    check_is_encoder(name, config)
    for rate in DROPOUTS:
        if isinstance(getattr(config, rate, None), float | int):
            setattr(config, rate, dropout)
    loader: Any = AutoModel
    if config.model_type not in MODEL_FOR_MASKED_LM_MAPPING_NAMES and config.model_type != "xlnet":
        loader = AutoModelForTextEncoding  # without the decoder of the T5 family
    # The library changes state of the whole process while it builds a model: one thread at a time.
    with explaining(name, folder), seeded(0), device("meta"):
        described = loader.from_config(config)
    tensors = (*described.parameters(), *described.buffers())
    check_size(folder, sum(tensor.numel() for tensor in tensors))
    # Weights that a checkpoint lacks, such as a pooler's, are drawn at random, from a fixed seed.
    with explaining(name, folder), seeded(0):
        model = loader.from_pretrained(folder, config=config, dtype=float32, **WEIGHTS)
    model.config._name_or_path = ""  # or the saved model would contain a path of this machine
    return use_fused_attention(model)


def use_fused_attention(model: nn.Module) -> nn.Module:
    """Replace MPNet's attention by a fused one; for other families the library has its own."""
    config: Any = model.config
    if config.model_type == "mpnet":
        from treetop.features.encoders import mpnet

        mpnet.fuse(model)
    return model


def check_is_encoder(name: str, config: Any) -> None:
    """Raise an error unless the architecture is a bidirectional encoder, contains one, or is XLNet."""
    architecture = config.model_type
    if architecture in MODEL_FOR_TEXT_ENCODING_MAPPING_NAMES or architecture == "xlnet":
        return
    if architecture in MODEL_FOR_MASKED_LM_MAPPING_NAMES and not config.is_encoder_decoder:
        return
    kind = "a decoder" if architecture in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES else "not a text encoder"
    if config.is_encoder_decoder:
        kind = "an encoder-decoder"
    raise TreetopError(
        f"encoder {name!r} is {kind} ({architecture}): "
        "choose an encoder such as BERT, RoBERTa, MPNet or that of T5"
    )
