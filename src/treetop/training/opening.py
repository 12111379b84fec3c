"""Tokenizer and encoder opened while text features are made: importing torch takes as long as those."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from treetop.errors import TreetopError
from treetop.features.encoders.opening import TextEncoder, is_word_vectors, open_encoder, open_tokenizer
from treetop.features.encoders.subwords import Ragged
from treetop.runtime import Runtime
from treetop.runtime.parallel import Later, short_turns
from treetop.settings.schema import TransformerSettings


class Tokens(NamedTuple):
    """Token ids of the documents and of those held back, and where they are cut."""

    own: Ragged
    held: Ragged
    length: int


class Opening:
    """An encoder that is being opened in threads of its own."""

    def __init__(self, settings: TransformerSettings, runtime: Runtime) -> None:
        self._tokenizer = Later(lambda: open_tokenizer(settings.encoder, runtime))
        self._encoder = Later(lambda: self._open(settings, runtime))

    def _open(self, settings: TransformerSettings, runtime: Runtime) -> TextEncoder:
        if settings.fine_tune and is_word_vectors(settings.encoder):
            raise TreetopError("word vectors cannot be fine-tuned: set fine_tune=false")
        return open_encoder(
            settings.encoder,
            runtime,
            pooling=settings.pooling,
            max_length=settings.max_length,
            dropout=settings.dropout,
            to_learn=True,
            tokenizer=self._tokenizer.result(),
        )

    @contextmanager
    def meanwhile(self) -> Iterator[None]:
        """Work beside the opening, of which an error is raised at the end instead of much later."""
        with short_turns():
            yield
        self._encoder.check()

    def tokenizer(self) -> Any:
        """The encoder's tokenizer, opened seconds before its model; None if it has none."""
        return self._tokenizer.result()

    def encoder(self) -> TextEncoder:
        """Φ_dnn with the weights it came with."""
        return self._encoder.result()


def encoder_files(encoder: str) -> list[tuple[str, int, int]]:
    """Names, sizes and times of an encoder's files, so that another one is noticed."""
    path = Path(encoder)
    files = [path] if path.is_file() else sorted(path.rglob("*")) if path.is_dir() else []
    return [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files]
