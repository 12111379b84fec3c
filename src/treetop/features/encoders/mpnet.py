"""MPNet with PyTorch's fused attention, which the transformers library lacks for this family."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers.modeling_outputs import BaseModelOutput
from transformers.models.mpnet.modeling_mpnet import MPNetEncoder, MPNetSelfAttention

from treetop.features.encoders.attention import NAME


class FusedMPNetAttention(MPNetSelfAttention):
    """MPNet's attention by PyTorch's fused kernel, which does not store every attention score."""

    def forward(  # type: ignore[override]
        self, hidden_states: Tensor, *_: Any, position_bias: Tensor, **__: Any
    ) -> Any:
        """Same as the original, except that `position_bias` includes the mask."""
        heads = (*hidden_states.shape[:-1], -1, self.attention_head_size)
        q, k, v = (
            project(hidden_states).view(heads).transpose(1, 2) for project in (self.q, self.k, self.v)
        )
        dropout = self.dropout.p if self.training else 0.0
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=position_bias, dropout_p=dropout)
        return (self.o(mixed.transpose(1, 2).flatten(2)),)


class FusedMPNetEncoder(MPNetEncoder):
    """MPNet's layers, with the bias of relative positions and the mask combined once per batch.

    The bias is not trained: its gradient would require storing every attention score.
    """

    def forward(
        self, hidden_states: Tensor, attention_mask: Tensor | None = None, *_: Any, **__: Any
    ) -> Any:
        """Token vectors of the last layer."""
        bias = self.bias_of_positions(hidden_states)
        if attention_mask is not None:
            bias = bias.masked_fill(~attention_mask, torch.finfo(bias.dtype).min)
        layers: Any = self.layer
        for layer in layers:
            mixed = layer.attention.attn(hidden_states, position_bias=bias)[0]
            attention = layer.attention.LayerNorm(layer.attention.dropout(mixed) + hidden_states)
            hidden_states = layer.output(layer.intermediate(attention), attention)
        return BaseModelOutput(last_hidden_state=hidden_states)  # type: ignore[arg-type]

    def bias_of_positions(self, x: Tensor) -> Tensor:
        """The bias of relative positions: 1 x heads x tokens x tokens."""
        positions = torch.arange(x.shape[1], device=x.device)
        bucket_of: Any = self.relative_position_bucket
        buckets = bucket_of(positions[None, :] - positions[:, None])
        # PyTorch falls back to its slow path unless the last dimension is contiguous.
        return self.relative_attention_bias.weight.detach()[buckets].permute(2, 0, 1)[None].contiguous()


def fuse(model: nn.Module) -> None:
    """Replace the attention of an MPNet in place; weights keep their names and values."""
    for module in model.modules():
        if type(module) is MPNetSelfAttention:
            module.__class__ = FusedMPNetAttention
        elif type(module) is MPNetEncoder:
            module.__class__ = FusedMPNetEncoder
            module.config._attn_implementation = NAME
            module.relative_attention_bias.requires_grad_(False)
