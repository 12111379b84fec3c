"""Opening of tokenizer and encoder in the background: importing torch takes seconds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from treetop.errors import TreetopError
from treetop.features.encoders.opening import TextEncoder, is_word_vectors, open_encoder, open_tokenizer
from treetop.features.encoders.subwords import Ragged
from treetop.runtime import Runtime
from treetop.runtime.background import Later, short_turns
from treetop.settings.schema import TransformerSettings

if TYPE_CHECKING:  # importing it takes seconds
    from treetop.features.encoders.transformer import Encoder


class Tokens(NamedTuple):
    """Token ids of the training and of the held-out documents, truncated to `length`."""

    own: Ragged
    held: Ragged
    length: int


class Opening:
    """An encoder that is being opened in background threads."""

    def __init__(self, settings: TransformerSettings, runtime: Runtime) -> None:
        self._tokenizer = Later(lambda: open_tokenizer(settings.encoder, runtime))
        self._encoder = Later(lambda: self._open(settings, runtime))

    def _open(self, settings: TransformerSettings, runtime: Runtime) -> TextEncoder:
        if settings.fine_tune and is_word_vectors(settings.encoder):
            raise TreetopError("word vectors cannot be fine-tuned: set fine_tune=false")
        encoder = open_encoder(
            settings.encoder,
            runtime,
            pooling=settings.pooling,
            max_length=settings.max_length,
            dropout=settings.dropout,
            to_learn=True,
            tokenizer=self._tokenizer.result(),
        )
        if settings.fine_tune and settings.tuned_layers is not None:
            from treetop.features.encoders.layers import check_tuned_layers

            check_tuned_layers(cast("Encoder", encoder), settings.tuned_layers)
        return encoder

    @contextmanager
    def meanwhile(self) -> Iterator[None]:
        """Do other work in the meantime; at its end, raise the error if the opening has failed."""
        with short_turns():
            yield
        self._encoder.check()

    def tokenizer(self) -> Any:
        """Wait for the tokenizer, which is ready before the encoder; None if it has none."""
        return self._tokenizer.result()

    def encoder(self) -> TextEncoder:
        """Wait for the encoder with its pre-trained weights."""
        return self._encoder.result()


def encoder_files(encoder: str) -> list[tuple[str, int, int]]:
    """List names, sizes and times of an encoder's files, to detect that it has been replaced."""
    path = Path(encoder)
    files = [path] if path.is_file() else sorted(path.rglob("*")) if path.is_dir() else []
    return [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files]
