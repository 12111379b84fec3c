"""What an encoder takes, measured by encoding a few of the texts."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from treetop.features.encoders.opening import TextEncoder, open_encoder
from treetop.runtime import Runtime
from treetop.runtime.memory import memory_in_use
from treetop.runtime.parallel import torch_threads
from treetop.settings.schema import TransformerSettings

# The texts that are encoded have about this many characters together: some thousand tokens.
CHARACTERS = 6000
# Characters of a token of English text; an encoder reads max_length tokens.
PER_TOKEN = 4.5


class EncoderFigures(NamedTuple):
    """What an encoder takes on this machine."""

    device: str
    width: int
    seconds: float  # to encode all documents once
    memory: int  # bytes of the encoder and of encoding a batch
    weights: int  # bytes in the folder of the model
    layers: int = 1


def try_encoder(
    texts: Sequence[str], settings: TransformerSettings, runtime: Runtime
) -> EncoderFigures:
    """Open the encoder and encode some of the texts, chosen at random."""
    longest = round(PER_TOKEN * settings.max_length)
    lengths = np.fromiter((min(len(text), longest) for text in texts), np.int64, len(texts))
    order = np.random.default_rng(0).permutation(len(texts))
    count = 1 + int(np.searchsorted(np.cumsum(lengths[order]), CHARACTERS))
    some = [texts[row][:longest] for row in order[:count]]
    loaded = memory_in_use()
    encoder = open_encoder(
        settings.encoder,
        runtime,
        pooling=settings.pooling,
        max_length=settings.max_length,
        dropout=settings.dropout,
        to_learn=settings.fine_tune,
    )
    with torch_threads(runtime.threads):
        encoder.embed_texts(some[:1])  # the first call takes longer
        began = time.perf_counter()
        encoder.embed_texts(some)
        seconds = time.perf_counter() - began
    return EncoderFigures(
        device_of(encoder),
        encoder.width,
        seconds * float(lengths.sum()) / max(1, sum(map(len, some))),
        max(0, memory_in_use() - loaded),
        bytes_of_weights(encoder),
        int(getattr(encoder, "layers", 1)),
    )


def device_of(encoder: TextEncoder) -> str:
    """The device that an encoder is on, such as cpu or cuda:0."""
    parameters = getattr(encoder, "parameters", None)
    return "cpu" if parameters is None else str(next(parameters()).device)


def bytes_of_weights(encoder: TextEncoder) -> int:
    """Bytes of the weights of an encoder as they are saved; 0 for one that is not of torch."""
    parameters = getattr(encoder, "parameters", None)
    return 0 if parameters is None else sum(4 * weight.numel() for weight in parameters())
