"""Cheap trials of features: rankers of a sample's labels, without a tree, in a few passes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from treetop.features.hybrid import Features, raw_csr
from treetop.features.words.stacking import side_by_side
from treetop.features.words.tfidf import fit_tfidf
from treetop.labels.relevance import positive_weights
from treetop.ranking.matching import all_below_root
from treetop.ranking.solver import solve_level
from treetop.ranking.weights import ClusterWeights
from treetop.runtime.progress import Reporter
from treetop.settings import auto
from treetop.settings.notation import Ngrams, parse_ngrams
from treetop.settings.schema import LinearSettings
from treetop.training.sampling import TrialSample

PASSES = 4
# With fewer documents, weights are smaller. At the pruning of the final model, features with many
# n-grams would lose most of theirs: on three data sets, the correlation of trials with full trainings
# rose from 0.04, 0.42 and 0.88 to 0.92, 0.76 and 0.90 with this factor.
PRUNING = 0.3
# Word n-grams of up to this length, and character n-grams, are read together: most candidates need
# some of them.
READ_TOGETHER = {"word": 2, "char": 4}


class Read(NamedTuple):
    """What one analyzer has read of a sample."""

    X: sp.csr_matrix  # float32, (documents, n-grams), rows of length 1
    held: sp.csr_matrix  # float32, (held-out documents, n-grams)
    lengths: np.ndarray  # int64, by n-gram

    def only(self, shortest: int, longest: int) -> Read:
        """The n-grams of these lengths, in rows of length 1."""
        chosen = (self.lengths >= shortest) & (self.lengths <= longest)
        if chosen.all():
            return self
        return Read(unit_columns(self.X, chosen), unit_columns(self.held, chosen), self.lengths[chosen])


@dataclass(frozen=True)
class FeatureBank:
    """Features of a sample. Each text is read once for all the candidates that an analyzer serves."""

    sample: TrialSample
    settings: LinearSettings
    threads: int
    _read: dict[Ngrams, Read] = field(default_factory=dict)

    def of(self, ngrams: str) -> tuple[sp.csr_matrix, sp.csr_matrix]:
        """Return the features of the documents and those of the held-out ones."""
        parts = [self._items(item) for item in parse_ngrams(ngrams)]
        X = side_by_side([part.X for part in parts], self.threads)
        return X, side_by_side([part.held for part in parts], self.threads)

    def _items(self, item: Ngrams) -> Read:
        longest = READ_TOGETHER[item.unit]
        together = item._replace(lengths=(1, longest)) if item.lengths[1] <= longest else item
        if together not in self._read:
            self._read[together] = self._fitted(together)
        return self._read[together].only(*item.lengths)

    def _fitted(self, item: Ngrams) -> Read:
        first = "" if item.first is None else f"@{item.first}"
        notation = f"{item.unit}:{item.lengths[0]}-{item.lengths[1]}{first}"
        analysers = replace(self.settings, ngrams=notation).analysers()
        tfidf, X = fit_tfidf(analysers, self.sample.texts, self.threads)
        held = tfidf.transform(self.sample.held_texts, self.threads)
        return Read(X, held, (tfidf.fitted[0].spelling >= 0).sum(axis=1))


def unit_columns(X: sp.csr_matrix, chosen: np.ndarray) -> sp.csr_matrix:
    """Keep the chosen columns (bool) of a matrix, and scale its rows to length 1."""
    kept = chosen[X.indices]
    data, ends = X.data[kept], np.append(0, np.cumsum(kept))[X.indptr]
    squares = np.append(0.0, np.cumsum(data.astype(np.float64) ** 2))[ends]
    norms = np.sqrt(np.maximum(np.diff(squares), 1e-12))
    scale = np.repeat(1 / norms, np.diff(ends)).astype(np.float32)
    numbers = np.cumsum(chosen, dtype=np.int32) - 1
    shape = (X.shape[0], int(chosen.sum()))
    return raw_csr(data * scale, numbers[X.indices[kept]], ends, shape)


def trial(
    X: sp.csr_matrix, held: sp.csr_matrix, sample: TrialSample, settings: LinearSettings, threads: int
) -> np.ndarray:
    """Train rankers of the sampled labels and score these for the held-out documents.

    Returns float32 of shape (held-out documents, sampled labels): the scores of a flat model.
    """
    # R̂ of all labels: that of the sampled ones would depend on how many of them a document has.
    normalized = bool(settings.cost_sensitive) and settings.relevance_norm == "l1"
    R = sp.csr_matrix(positive_weights(sample.Y, normalized)[:, sample.labels])
    ranker = auto.for_depth(settings.ranker().of_first_level(), 1)
    ranker = replace(ranker, cost_sensitive=False, passes=min(PASSES, ranker.passes))
    ranker = replace(ranker, prune_below=PRUNING * ranker.prune_below)
    weights = solve_level(
        Features(raw_csr(X.data, X.indices, X.indptr, X.shape), np.zeros((X.shape[0], 0), np.float32)),
        R,
        all_below_root(X.shape[0]),
        np.array([0, sample.labels.size]),
        ranker,
        seed=settings.seed,
        threads=threads,
        report=Reporter(),
        name="",
        document_weights=sample.weights,
    )[0]
    return probabilities(held, weights)


def probabilities(X: sp.csr_matrix, weights: ClusterWeights) -> np.ndarray:
    """Score the children of one cluster: sigmoids of w·x + b, float32 of shape (N, children)."""
    children = weights.biases.size
    rows = np.full(X.shape[1], -1)
    rows[weights.features] = np.arange(weights.features.size)
    used = rows[X.indices] >= 0
    ends = np.append(0, np.cumsum(used))[X.indptr]
    shape = (X.shape[0], weights.features.size)
    seen = sp.csr_matrix((X.data[used], rows[X.indices[used]], ends), shape=shape)
    pointers = np.append(0, weights.ends)
    W = sp.csr_matrix((weights.values, weights.children, pointers), shape=(shape[1], children))
    raw = (seen @ W).toarray() + weights.biases
    return np.asarray(1 / (1 + np.exp(-raw)), np.float32)
