"""Φ_cat: from texts to features, the same in fine-tuning, in ranking and in prediction."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import scipy.sparse as sp

from treetop.errors import TreetopError
from treetop.features.encoders.handle import EncoderHandle
from treetop.features.hybrid import Features, cat, center_of, features, on_dense_half
from treetop.runtime import Runtime


class Vectoriser(Protocol):
    """Φ_tfidf: texts to sparse rows of length 1."""

    @property
    def kind(self) -> str: ...  # noqa: D102
    @property
    def features(self) -> int: ...  # noqa: D102
    def transform(self, texts: Iterable[str], threads: int | None = None) -> sp.csr_matrix:
        """float32 CSR, one row per text, features ascending in each row."""

    def feature_name(self, feature: int) -> str:
        """The n-gram of a feature."""

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything that was learned, as named arrays."""


@dataclass(frozen=True)
class FeatureMap:
    """What makes features of texts. One that has neither words nor an encoder takes matrices only."""

    widths: tuple[int, int]  # columns of the sparse and of the dense half
    words: Vectoriser | None = None
    encoder: EncoderHandle | None = None
    dense_weight: float = 1.0  # length of the encoder's half of Φ_cat
    center: np.ndarray | None = None  # subtracted from that half first
    sees_words: bool = True  # False: the rankers see the encoder's half alone

    @property
    def reads_texts(self) -> bool:
        """Whether texts can be given, and not only features."""
        return self.words is not None or self.encoder is not None

    def of_texts(self, texts: Iterable[str], runtime: Runtime) -> Features:
        """Φ_cat of texts; the sparse half alone for a model without an encoder."""
        if not self.reads_texts:
            raise TreetopError("this model was trained on a feature matrix, not on text")
        assert self.words is not None
        if self.encoder is None:
            return features(self.words.transform(texts, runtime.threads))
        texts = list(texts)
        vectors = self.encoder.open(runtime).embed_texts(texts)
        return self.join(self.words.transform(texts, runtime.threads), vectors)

    def join(self, tfidf: sp.csr_matrix, vectors: np.ndarray) -> Features:
        """Φ_cat from Φ_tfidf and Φ_dnn: both halves scaled row by row, then placed side by side."""
        seen = tfidf if self.sees_words else tfidf[:, :0]
        return cat(seen, vectors, self.dense_weight, self.center)

    def centered_on(self, vectors: np.ndarray) -> FeatureMap:
        """The map that subtracts the mean of these vectors from the encoder's half."""
        return replace(self, center=center_of(vectors))

    def on_dense_half(
        self, weight: np.ndarray, bias: np.ndarray, vectors: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """A linear score of Φ_dnn, learned on `vectors`, as weights of the half that `join` makes."""
        return on_dense_half(weight, bias, vectors, self.dense_weight, self.center)
