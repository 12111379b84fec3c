"""PyTorch's fused attention, with masks that do not synchronize the host with the device."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import bidirectional_mask_function, sdpa_mask

NAME = "treetop"
# Families whose CUDA graphs were compared with eager execution on a GPU. XLNet cannot be recorded.
RECORDABLE = {
    "bert",
    "roberta",
    "xlm-roberta",
    "distilbert",
    "mpnet",
    "electra",
    "albert",
    "deberta-v2",
    "modernbert",
    "t5",
}


def padding_mask(
    *,
    batch_size: int,
    q_length: int,
    kv_length: int,
    attention_mask: Tensor | None = None,
    mask_function: Any = bidirectional_mask_function,
    **rest: Any,
) -> Tensor | None:
    """Bool mask, True at tokens that may be attended to; None if there is no padding.

    The library's own function checks whether there is padding, which makes the host wait for the
    device. While a CUDA graph is recorded it makes a mask even if none is needed.
    """
    if mask_function is not bidirectional_mask_function:
        return sdpa_mask(  # type: ignore[no-any-return]
            batch_size=batch_size,
            q_length=q_length,
            kv_length=kv_length,
            attention_mask=attention_mask,
            mask_function=mask_function,
            **rest,
        )
    if attention_mask is None:
        return None
    return attention_mask[:, None, None, :].expand(batch_size, 1, q_length, kv_length)


AttentionInterface.register(NAME, sdpa_attention_forward)  # type: ignore[no-untyped-call]
AttentionMaskInterface.register(NAME, padding_mask)  # type: ignore[no-untyped-call]


def never_wait(model: nn.Module) -> None:
    """Make an encoder use `padding_mask` for its masks."""
    config: Any = model.config
    if config._attn_implementation == "sdpa":
        config._attn_implementation = NAME
