"""An encoder from its name: a transformer, one exported to ONNX, or a file of word vectors."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from treetop.errors import TreetopError
from treetop.features.encoders.wordvectors import VECTORS_FILE, WordVectors
from treetop.runtime import Runtime
from treetop.runtime.extras import require
from treetop.runtime.temporary import has_temporary_folder


class TextEncoder(Protocol):
    """Φ_dnn: a transformer, one exported to ONNX, or word vectors."""

    @property
    def width(self) -> int:
        """Columns of Φ_dnn."""

    def embed_texts(
        self, texts: Iterable[str], advance: Callable[[], object] | None = None
    ) -> np.ndarray:
        """Φ_dnn: float32, texts x width. Calls `advance` after each batch."""

    def place(self, runtime: Runtime) -> None:
        """Move to the device and the precision of `runtime`, unless those are auto."""

    def save(self, folder: Path) -> None:
        """Write the encoder to a new folder."""


def require_torch() -> None:
    """Raise an error with the command that installs torch and transformers if they are missing."""
    if not has_temporary_folder():
        # While it is imported, torch creates a cache of compiled kernels, which treetop does not use.
        os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", os.sep)
    require("text encoders", "transformer")


def is_word_vectors(name: str) -> bool:
    """Whether `name` is a file, which must hold word vectors, or a folder with saved ones."""
    path = Path(name)
    return path.is_file() or (path / VECTORS_FILE).is_file()


def is_exported(name: str) -> bool:
    """Whether `name` is a folder with an encoder that treetop exported to ONNX."""
    return (Path(name) / "model.onnx").is_file() and (Path(name) / "onnx.json").is_file()


def needs_torch(name: str) -> bool:
    """Whether an encoder is a transformer, which torch runs."""
    return not (is_word_vectors(name) or is_exported(name))


def open_tokenizer(name: str, runtime: Runtime) -> Any:
    """The tokenizer of a transformer, ready seconds before its model; None for other encoders.

    Downloads the encoder if it is not on this machine.
    """
    if not needs_torch(name):
        return None
    require_torch()
    from treetop.features.encoders.library import load_tokenizer
    from treetop.features.encoders.sources import find_encoder

    return load_tokenizer(name, find_encoder(name, runtime.reporter.note))


def open_encoder(
    name: str,
    runtime: Runtime,
    *,
    pooling: str,
    max_length: int,
    dropout: float,
    to_learn: bool,
    tokenizer: Any = None,
) -> TextEncoder:
    """Word vectors, an encoder that was exported to ONNX, or a transformer on the runtime's device.

    With `to_learn` a transformer keeps float32 weights, as fine-tuning and saving require, whatever
    precision it computes in. `tokenizer` is what `open_tokenizer` returned, if it was called before.
    """
    if is_word_vectors(name):
        return WordVectors.load(Path(name))
    if is_exported(name):
        from treetop.features.encoders.onnx import OnnxEncoder

        if to_learn:
            raise TreetopError(f"encoder {name!r} was exported to ONNX and cannot be trained")
        return OnnxEncoder(Path(name), max_length)
    if tokenizer is None:
        tokenizer = open_tokenizer(name, runtime)
    from treetop.features.encoders.devices import pick_device, pick_precision
    from treetop.features.encoders.transformer import Encoder

    device = pick_device(runtime.device)
    encoder = Encoder(name, pooling, max_length, dropout, tokenizer).to(device).eval()
    encoder.compute = pick_precision(runtime.precision, device)
    return encoder if to_learn else encoder.to(encoder.compute)
