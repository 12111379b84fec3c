"""A sample of the documents, and what their texts say about all: n-grams, values, time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from treetop.features.hybrid import Features, features
from treetop.features.words.tfidf import Tfidf, fit_tfidf
from treetop.settings.schema import LinearSettings

# The sample has at most these, so that reading it takes some tenths of a second, and at most one in
# so many of all documents, so that its cost is a small part of the training's.
MOST_DOCUMENTS, MOST_CHARACTERS, LEAST_RATIO = 2000, 1_000_000, 5
# With fewer, training takes less time than the estimate.
FEWEST_DOCUMENTS = 200


class TextFigures(NamedTuple):
    """Text features of all documents, predicted from those of the sample."""

    seconds: float  # of one processor
    characters: int
    values: tuple[float, ...]  # non-zeros per document, by analyzer
    columns: tuple[int, ...]  # features, by analyzer
    power: float  # the number of features grows with this power of that of the documents

    def columns_of(self, share: float) -> float:
        """Predict how many features a share of the documents has."""
        return float(sum(self.columns) * share**self.power)


class Sample(NamedTuple):
    """Documents chosen at random, with their features."""

    rows: np.ndarray  # int64
    X: Features
    words: Tfidf
    figures: TextFigures


def sampled_rows(texts: Sequence[str], seed: int = 0) -> np.ndarray:
    """Choose the documents of the sample: int64, ascending; empty if there are too few."""
    order = np.random.default_rng(seed).permutation(len(texts))[: len(texts) // LEAST_RATIO]
    order = order[:MOST_DOCUMENTS]
    lengths = np.cumsum([len(texts[row]) for row in order])
    count = int(np.searchsorted(lengths, MOST_CHARACTERS, "right"))
    return np.sort(order[:count]) if count >= FEWEST_DOCUMENTS else order[:0]


def sample_of_texts(
    texts: Sequence[str], rows: np.ndarray, settings: LinearSettings, threads: int
) -> Sample:
    """Compute the features of some texts as training does, and predict those of all."""
    own = [texts[row] for row in rows]
    half, _ = fit_tfidf(settings.analysers(), own[::2], threads)  # this also reads the machine code
    began = time.process_time()
    words, X = fit_tfidf(settings.analysers(), own, threads)
    seconds = time.process_time() - began
    characters, own_characters = sum(map(len, texts)), sum(map(len, own))
    counts = np.bincount(X.indices, minlength=X.shape[1])
    edges = np.cumsum([0, *words.widths])
    columns = tuple(
        extrapolated(before, after, len(texts) / len(own), settings.max_features)
        for before, after in zip(half.widths, words.widths, strict=True)
    )
    figures = TextFigures(
        seconds * characters / own_characters,
        characters,
        values=tuple((np.add.reduceat(counts, edges[:-1]) / len(own)).tolist()),
        columns=columns,
        power=float(np.log2(words.features / half.features)),
    )
    return Sample(rows, features(X), words, figures)


def extrapolated(half: int, whole: int, ratio: float, most: int | None) -> int:
    """Predict how many features `ratio` times as many texts have, from those of half of the texts.

    The number of distinct words grows as a power of that of texts (Heaps' law).
    """
    if not half or not whole:
        return whole
    power = float(np.log2(whole / half))
    predicted = round(whole * ratio**power)
    return int(predicted if most is None else min(predicted, most))
