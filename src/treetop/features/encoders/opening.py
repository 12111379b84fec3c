"""An encoder from its name: a transformer, one exported to ONNX, or a file of word vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from treetop.errors import TreetopError
from treetop.features.encoders.wordvectors import VECTORS_FILE, WordVectors
from treetop.runtime.extras import require


def require_torch() -> None:
    """Raise an error with the command that installs torch and transformers if they are missing."""
    require("text encoders", "transformer")


def is_word_vectors(name: str) -> bool:
    """Whether an encoder is a file of word vectors, or a folder that holds saved ones."""
    path = Path(name)
    return path.is_file() or (path / VECTORS_FILE).is_file()


def is_exported(name: str) -> bool:
    """Whether an encoder was exported to ONNX."""
    return (Path(name) / "model.onnx").is_file()


def open_tokenizer(name: str) -> Any:
    """The tokenizer of a transformer, seconds before its model; None if an encoder is none."""
    if is_word_vectors(name) or is_exported(name):
        return None
    require_torch()
    from treetop.features.encoders.sources import find_encoder, load_tokenizer

    return load_tokenizer(find_encoder(name))


def open_encoder(
    name: str,
    pooling: str,
    max_length: int,
    dropout: float,
    device: str,
    precision: str,
    to_learn: bool,
    tokenizer: Any = None,
) -> Any:
    """A `WordVectors`, an `OnnxEncoder`, or an `Encoder` on its device.

    All have `embed_texts`, `width` and `save`.

    One that is to learn or to be saved keeps float32 weights, whatever type it computes in. The
    device of a saved model need not exist here. `tokenizer`: one that was opened before.
    """
    if is_word_vectors(name):
        return WordVectors.load(Path(name))
    if is_exported(name):
        from treetop.features.encoders.onnx import OnnxEncoder

        if to_learn:
            raise TreetopError(f"encoder {name!r} was exported to ONNX: it cannot learn any more")
        return OnnxEncoder(Path(name), max_length)
    require_torch()
    from treetop.features.encoders.devices import pick_device, pick_precision
    from treetop.features.encoders.sources import find_encoder
    from treetop.features.encoders.transformer import Encoder

    try:
        place = pick_device(device)
    except TreetopError:
        if to_learn:
            raise
        place = pick_device("auto")
    made = Encoder(find_encoder(name), pooling, max_length, dropout, tokenizer).to(place).eval()
    made.compute = pick_precision(precision, place)
    return made if to_learn else made.to(made.compute)
