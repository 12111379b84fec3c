"""How many documents fine-tuning on a CPU computes at once, so that it keeps to a limit of memory."""

from __future__ import annotations

from typing import NamedTuple

from treetop.errors import TreetopError
from treetop.features.encoders.transformer import Encoder
from treetop.runtime import Runtime
from treetop.runtime.memory import memory_in_use, size_text
from treetop.training.finetune.sharing import DOCUMENTS_PER_PART

# Bytes of a float32 weight with its gradient, the two moments of Adam, and the copies of the best
# weights and of those to return.
OF_WEIGHT = 4 * 6
# Bytes that a layer keeps for the gradients: per token and unit of its width, and per pair of tokens
# and head. Measured with encoders of 6 and 12 layers on texts of 64 to 512 tokens.
OF_TOKEN, OF_PAIR = 90, 14.5
# Copies of Φ_dnn: of one level, and of the one before.
VECTORS = 2 * 4


class EncoderShape(NamedTuple):
    """What the memory of an encoder depends on."""

    weights: int
    layers: int
    width: int
    heads: int

    @classmethod
    def of(cls, encoder: Encoder) -> EncoderShape:
        """The shape of an encoder, or of the part of it that learns."""
        config = encoder.model.config
        return cls(
            sum(weight.numel() for weight in encoder.parameters()),
            encoder.layers,
            encoder.width,
            int(getattr(config, "num_attention_heads", 12)),
        )

    def of_document(self, tokens: int) -> int:
        """Bytes for the gradients of a document of so many tokens."""
        by_token = OF_TOKEN * tokens * self.width
        return int(self.layers * (by_token + OF_PAIR * self.heads * tokens**2))

    def fixed(self, documents: int, nodes: int) -> int:
        """Bytes besides those of a batch: weights of encoder and head, and Φ_dnn of the documents."""
        return OF_WEIGHT * (self.weights + nodes * self.width) + VECTORS * documents * self.width


def documents_that_fit(
    shape: EncoderShape, longest: int, documents: int, nodes: int, runtime: Runtime
) -> int:
    """The documents to compute at once, at most `DOCUMENTS_PER_PART`; raise if not even one fits.

    `longest` is the number of tokens of the longest document, `nodes` that of the finest level.
    """
    limit, loaded, most = runtime.memory_bytes, memory_in_use(), DOCUMENTS_PER_PART
    if limit is None:
        return most
    fixed, own = loaded + shape.fixed(documents, nodes), shape.of_document(longest)
    if fixed + own > limit:
        raise TreetopError(
            f"fine-tuning takes about {size_text(fixed + own)}, but memory is {size_text(limit)}: "
            f"{shorter_texts(shape, longest, limit - fixed)}"
        )
    while fixed + most * own > limit:
        most //= 2
    if most < DOCUMENTS_PER_PART:
        runtime.reporter.note(f"batches are computed {most} documents at a time to save memory")
    return most


def shorter_texts(shape: EncoderShape, longest: int, room: int) -> str:
    """Which setting fits into so many bytes."""
    length = longest // 2
    while length >= 16:
        if shape.of_document(length) <= room:
            return f"set max_length={length}, or raise memory"
        length //= 2
    return "choose a smaller encoder, set tuned_layers=1 or fine_tune=false, or raise memory"
