"""Φ_cat: texts to features, the same way in fine-tuning, ranking and prediction."""

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
    def kind(self) -> str:
        """The class, as config.json names it."""

    @property
    def features(self) -> int:
        """Number of features."""

    def transform(self, texts: Iterable[str], threads: int | None = None) -> sp.csr_matrix:
        """float32 CSR, texts x features, with ascending indices in each row."""

    def feature_name(self, feature: int) -> str:
        """The n-gram of a feature."""

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything that was learned, as arrays by name."""


@dataclass(frozen=True)
class FeatureMap:
    """Makes the features of texts. Without words and encoder, a model takes feature matrices only."""

    widths: tuple[int, int]  # columns of the sparse and the dense half
    words: Vectoriser | None = None
    encoder: EncoderHandle | None = None
    dense_weight: float = 1.0  # length of the rows of the dense half
    center: np.ndarray | None = None  # float32, subtracted from the dense half before it is scaled
    sees_words: bool = True  # False: the rankers use the dense half only
    names: tuple[str, ...] = ()  # of the columns of a table that a model was trained on

    @property
    def reads_texts(self) -> bool:
        """Whether the map takes texts, and not only feature matrices."""
        return self.words is not None or self.encoder is not None

    def of_texts(self, texts: Iterable[str], runtime: Runtime) -> Features:
        """Φ_cat of texts; the sparse half only if there is no encoder. Blank texts are marked."""
        if not self.reads_texts:
            raise TreetopError("this model was trained on a feature matrix, not on text")
        assert self.words is not None
        if self.encoder is None:
            return features(self.words.transform(texts, runtime.threads)).blank_marked()
        texts = list(texts)
        vectors = self.encoder.embed(texts, runtime)
        if vectors.shape[1] != self.widths[1]:
            place = "" if self.encoder.folder is None else f"{self.encoder.folder}: "
            raise TreetopError(
                f"{place}the encoder makes vectors of {vectors.shape[1]:,} numbers, but the model "
                f"expects {self.widths[1]:,}: copy the model folder again or train again"
            )
        joined = self.join(self.words.transform(texts, runtime.threads), vectors)
        return joined.blank_marked(texts)

    def join(self, tfidf: sp.csr_matrix, vectors: np.ndarray) -> Features:
        """Φ_cat from Φ_tfidf and Φ_dnn: both halves scaled row by row, then placed side by side."""
        sparse = tfidf if self.sees_words else tfidf[:, :0]
        return cat(sparse, vectors, self.dense_weight, self.center)

    def centered_on(self, vectors: np.ndarray) -> FeatureMap:
        """This map with the mean of these vectors as the center."""
        return replace(self, center=center_of(vectors))

    def on_dense_half(
        self, weight: np.ndarray, bias: np.ndarray, vectors: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Weights and bias for the dense half, equivalent to a linear score of Φ_dnn.

        `vectors` are those on which the score was learned.
        """
        return on_dense_half(weight, bias, vectors, self.dense_weight, self.center)
