"""Computes in the last layer only what pooling reads: with CLS pooling, the vector of the first token.

The first token attends to all others, so the last layer still needs their keys and values, which are a
sixth of its arithmetic. The rest of the layer is left out for all tokens but one.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

# Pooling methods that read nothing but the first token.
FIRST_TOKEN_POOLING = ("cls", "pooler")
# Families whose layers are named as BERT's are, and attend to absolute positions.
LIKE_BERT = {"bert", "roberta", "xlm-roberta", "camembert", "electra"}


def first_token_attention(
    attention: Any,
    hidden_states: Tensor,
    attention_mask: Tensor | None = None,
    *rest: Any,
    **options: Any,
) -> tuple[Tensor, None]:
    """Attend with the first token only: documents x 1 x width, from documents x tokens x width.

    In training, where the library drops out attention scores, return the vectors of all tokens. In 16
    bits, too: there, how a product of a single row is rounded depends on the number of documents.
    """
    if attention.training or hidden_states.dtype != torch.float32:
        library = type(attention).forward
        return library(attention, hidden_states, attention_mask, *rest, **options)  # type: ignore[no-any-return]
    inner, first = attention.self, hidden_states[:, :1]

    def heads(projected: Tensor) -> Tensor:
        shape = (*projected.shape[:-1], -1, inner.attention_head_size)
        return projected.view(shape).transpose(1, 2)

    mixed = F.scaled_dot_product_attention(
        heads(inner.query(first)),
        heads(inner.key(hidden_states)),
        heads(inner.value(hidden_states)),
        # the same for every token that attends, because encoders attend in both directions
        attn_mask=None if attention_mask is None else attention_mask[..., :1, :],
    )
    return attention.output(mixed.transpose(1, 2).flatten(2), first), None


def attend_with_first_token(model: nn.Module, pooling: str) -> None:
    """Make the last layer of a model compute the first token only, if pooling reads no other."""
    config: Any = model.config
    absolute = getattr(config, "position_embedding_type", None) in (None, "absolute")
    if pooling in FIRST_TOKEN_POOLING and config.model_type in LIKE_BERT and absolute:
        attention = model.encoder.layer[-1].attention  # type: ignore[union-attr, index]
        attention.forward = partial(first_token_attention, attention)  # type: ignore[union-attr]
