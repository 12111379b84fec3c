"""Attention by PyTorch's fused kernel, and masks for which the host need not wait."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import bidirectional_mask_function, sdpa_mask
from transformers.modeling_outputs import BaseModelOutput
from transformers.models.mpnet.modeling_mpnet import MPNetEncoder, MPNetSelfAttention

NAME = "treetop"
# Families whose kernels were recorded (CUDA graphs) and compared with plain ones on a GPU. XLNet's
# cannot be recorded.
RECORDABLE = {
    *("bert", "roberta", "xlm-roberta", "distilbert", "mpnet", "electra", "albert", "deberta-v2"),
    *("modernbert", "t5"),
}


def padding_mask(
    *, batch_size: int, q_length: int, kv_length: int, attention_mask: Tensor | None = None,
    mask_function: Any = bidirectional_mask_function, **rest: Any,
) -> Tensor | None:  # fmt: skip
    """True where a token may be looked at; None if there is no padding.

    The library's own function looks whether there is padding, which makes the host wait for the device,
    and while a CUDA graph is recorded it makes a mask where none is needed.
    """
    if mask_function is not bidirectional_mask_function:
        return sdpa_mask(  # type: ignore[no-any-return]
            batch_size=batch_size, q_length=q_length, kv_length=kv_length,
            attention_mask=attention_mask, mask_function=mask_function, **rest,
        )  # fmt: skip
    if attention_mask is None:
        return None
    return attention_mask[:, None, None, :].expand(batch_size, 1, q_length, kv_length)


AttentionInterface.register(NAME, sdpa_attention_forward)  # type: ignore[no-untyped-call]
AttentionMaskInterface.register(NAME, padding_mask)  # type: ignore[no-untyped-call]


def never_wait(model: nn.Module) -> None:
    """Let an encoder make its masks by `padding_mask`."""
    config: Any = model.config
    if config._attn_implementation == "sdpa":
        config._attn_implementation = NAME


class FusedMPNetAttention(MPNetSelfAttention):
    """MPNet's attention by PyTorch's fused kernel; the library's own writes out every score."""

    def forward(  # type: ignore[override]
        self, hidden_states: Tensor, *_: Any, position_bias: Tensor, **__: Any
    ) -> Any:
        """Like the original's; `position_bias` holds the mask too."""
        heads = (*hidden_states.shape[:-1], -1, self.attention_head_size)
        q, k, v = (
            project(hidden_states).view(heads).transpose(1, 2) for project in (self.q, self.k, self.v)
        )
        dropout = self.dropout.p if self.training else 0.0
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=position_bias, dropout_p=dropout)
        return (self.o(mixed.transpose(1, 2).flatten(2)),)


class FusedMPNetEncoder(MPNetEncoder):
    """MPNet's layers; the bias of relative positions and the mask are put together once.

    That bias stays as it was pre-trained: for its gradient every score would have to be written out.
    """

    def forward(
        self, hidden_states: Tensor, attention_mask: Tensor | None = None, *_: Any, **__: Any
    ) -> Any:
        """Vectors of the last layer."""
        bias = self.bias_of_positions(hidden_states)
        if attention_mask is not None:
            bias = bias.masked_fill(~attention_mask, torch.finfo(bias.dtype).min)
        layers: Any = self.layer
        for layer in layers:
            made = layer.attention.attn(hidden_states, position_bias=bias)[0]
            attention = layer.attention.LayerNorm(layer.attention.dropout(made) + hidden_states)
            hidden_states = layer.output(layer.intermediate(attention), attention)
        return BaseModelOutput(last_hidden_state=hidden_states)  # type: ignore[arg-type]

    def bias_of_positions(self, x: Tensor) -> Tensor:
        """1 x heads x tokens x tokens."""
        places = torch.arange(x.shape[1], device=x.device)
        bucket_of: Any = self.relative_position_bucket
        buckets = bucket_of(places[None, :] - places[:, None])
        # PyTorch falls back to its slow path unless the last dimension is contiguous.
        return self.relative_attention_bias.weight.detach()[buckets].permute(2, 0, 1)[None].contiguous()


def use_fused_attention(model: nn.Module) -> nn.Module:
    """Exchange MPNet's attention; other families have theirs from the library."""
    for module in model.modules():
        if type(module) is MPNetSelfAttention:
            module.__class__ = FusedMPNetAttention
        elif type(module) is MPNetEncoder:
            module.__class__ = FusedMPNetEncoder
            module.config._attn_implementation = NAME
            module.relative_attention_bias.requires_grad_(False)
    return model
