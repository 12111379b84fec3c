"""Φ_cat: texts to features, the same way in fine-tuning, ranking and prediction."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import scipy.sparse as sp

from treetop.errors import TreetopError
from treetop.features.encoders.handle import EncoderHandle
from treetop.features.hybrid import (
    Features,
    blank_texts,
    cat,
    center_of,
    features,
    on_dense_half,
    sparse_alone,
)
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
    """Makes the features of texts. Without words and encoder, a model takes feature matrices only.

    With an encoder but without words, the sparse half is ready: it is passed along with the texts.
    """

    widths: tuple[int, int]  # columns of the sparse and the dense half
    words: Vectoriser | None = None
    encoder: EncoderHandle | None = None
    dense_weight: float = 1.0  # length of the rows of the dense half
    center: np.ndarray | None = None  # float32, subtracted from the dense half before it is scaled
    sees_words: bool = True  # False: the rankers use the dense half only

    @property
    def reads_texts(self) -> bool:
        """Whether the map takes texts, and not only feature matrices."""
        return self.words is not None or self.encoder is not None

    @property
    def needs_features(self) -> bool:
        """Whether precomputed features are required, alone or with the texts."""
        if self.encoder is None:
            return self.words is None
        return self.words is None and self.widths[0] > 0

    def of_texts(
        self, texts: Iterable[str], runtime: Runtime, ready: Features | None = None
    ) -> Features:
        """Φ_cat of texts; the sparse half only if there is no encoder. Blank texts are marked.

        `ready` replaces Φ_tfidf in a map without words.
        """
        if not self.reads_texts:
            raise TreetopError(
                "this model was trained on a feature matrix, not on text: give a matrix, or texts with "
                "features="
            )
        if self.encoder is None:
            assert self.words is not None
            return features(self.words.transform(texts, runtime.threads)).blank_marked()
        texts = list(texts)
        sparse = self.sparse_half(texts, runtime, ready)
        vectors = self.encoder.embed(texts, runtime)
        if vectors.shape[1] != self.widths[1]:
            place = "" if self.encoder.folder is None else f"{self.encoder.folder}: "
            raise TreetopError(
                f"{place}the encoder makes vectors of {vectors.shape[1]:,} numbers, but the model "
                f"expects {self.widths[1]:,}: copy the model folder again or train again"
            )
        joined = self.join(sparse, vectors)
        if not self.needs_features:
            return joined.blank_marked(texts)
        # A text without words is not blank if it has features.
        blank = blank_texts(texts) & (np.diff(sparse.indptr) == 0)
        return replace(joined, blank=blank) if blank.any() else joined

    def sparse_half(self, texts: list[str], runtime: Runtime, ready: Features | None) -> sp.csr_matrix:
        """Φ_tfidf of texts, or the precomputed features in its place."""
        if self.words is not None:
            return self.words.transform(texts, runtime.threads)
        if not self.needs_features:
            return sp.csr_matrix((len(texts), 0), dtype=np.float32)
        width = self.widths[0]
        if ready is None:
            raise TreetopError(
                f"this model was trained on texts with precomputed features: give features= ({width:,} "
                "columns) with the texts"
            )
        if sum(ready.widths) != width:
            raise TreetopError(
                f"features has {sum(ready.widths):,} columns, but this model was trained with {width:,}"
            )
        return sparse_alone(ready)

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
