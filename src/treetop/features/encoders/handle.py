"""An encoder as part of a model, opened when it is first needed."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

import numpy as np

from treetop.errors import TreetopError
from treetop.features.encoders.halving import halve
from treetop.features.encoders.opening import TextEncoder, is_exported, is_word_vectors, open_encoder
from treetop.features.encoders.untrusted import check_encoder, errors_in_one_line
from treetop.runtime import Runtime
from treetop.runtime.pinned import read_pinned

Result = TypeVar("Result")


def accept(_: Path) -> None:
    """Accept any folder."""


@dataclass(frozen=True, eq=False)
class EncoderHandle:
    """The folder of an encoder and its settings, or an open encoder (made by `holding`)."""

    folder: Path | None
    pooling: str
    max_length: int
    dropout: float
    # Raises if the folder above `folder` does not hold the encoder that this handle is for anymore.
    check: Callable[[Path], None] = accept
    # Cache: the open encoder, by the device and the precision it was opened for.
    _open: dict[tuple[str, str], TextEncoder] = field(default_factory=dict, repr=False)
    _opening: Lock = field(default_factory=Lock, repr=False)

    @classmethod
    def holding(cls, encoder: TextEncoder, max_length: int, dropout: float = 0.1) -> EncoderHandle:
        """A handle of an open encoder, such as one that was just trained."""
        return cls(None, "auto", max_length, dropout, _open={("auto", "auto"): encoder})

    def open(self, runtime: Runtime) -> TextEncoder:
        """The encoder, ready on the runtime's device."""
        if self.folder is None:
            (encoder,) = self._open.values()
            encoder.place(runtime)
            return encoder
        key = (runtime.device, runtime.precision)
        with self._opening:
            if key in self._open:
                return self._open[key]
            encoder = self._read(lambda folder: self._opened(folder, runtime))
            self._open.clear()  # memory holds one encoder at a time
            self._open[key] = encoder
            return encoder

    def embed(self, texts: Sequence[str], runtime: Runtime) -> np.ndarray:
        """Φ_dnn of texts: float32, texts x width."""
        encoder = self.open(runtime)
        if self.folder is None:
            return encoder.embed_texts(texts)
        with errors_in_one_line(self.folder):
            vectors = encoder.embed_texts(texts)
            if not np.isfinite(vectors).all():
                raise TreetopError("the encoder makes NaN or infinity: copy the model folder again")
            return vectors

    def _opened(self, folder: Path, runtime: Runtime) -> TextEncoder:
        """Open the encoder in a folder, which may be from a stranger."""
        if not folder.is_dir():
            raise TreetopError(f"{folder}: missing: copy the whole model folder or train again")
        with errors_in_one_line(folder):
            if not is_word_vectors(str(folder)) and not is_exported(str(folder)):
                check_encoder(folder)
            return open_encoder(
                str(folder),
                runtime,
                pooling=self.pooling,
                max_length=self.max_length,
                dropout=self.dropout,
                to_learn=False,
            )

    def save(self, folder: Path, half: bool) -> None:
        """Write the encoder to a new folder, with float16 instead of float32 weights if `half`."""
        if self.folder is not None:
            self._read(lambda source: shutil.copytree(source, folder, dirs_exist_ok=True))
        else:
            (encoder,) = self._open.values()
            encoder.save(folder)
        if half:
            halve(folder)

    def _read(self, read: Callable[[Path], Result]) -> Result:
        """Return ``read(folder)`` for the folder of the encoder, which must not have been replaced."""
        assert self.folder is not None
        name = self.folder.name

        def checked(model: Path) -> Result:
            self.check(model)
            return read(model / name)

        return read_pinned(self.folder.parent, checked)

    def __getstate__(self) -> dict[str, Any]:
        """The state to pickle: an encoder with a folder is opened again in the other process."""
        state = {name: value for name, value in self.__dict__.items() if name != "_opening"}
        return {**state, "_open": {} if self.folder is not None else self._open}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _opening=Lock())
