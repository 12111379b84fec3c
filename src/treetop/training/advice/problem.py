"""What the stages are estimated from: counts of the data, and figures of a sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from treetop.features.hybrid import cat
from treetop.features.words.views import views_of
from treetop.runtime import Runtime
from treetop.runtime.memory import memory_in_use
from treetop.settings import auto
from treetop.settings.schema import LinearSettings, TransformerSettings
from treetop.training.advice.counting import LevelWork, expected_work
from treetop.training.advice.encoding import EncoderFigures, try_encoder
from treetop.training.advice.sample import Sample, TextFigures, sample_of_texts, sampled_rows
from treetop.training.advice.trial import Rates, TreeFigures, try_forest
from treetop.training.sampling import share_of_training


class Problem(NamedTuple):
    """The counts of all documents, and what their sample took."""

    settings: LinearSettings  # resolved for the data
    threads: int
    loaded: int  # bytes that this process has in memory before training
    texts: TextFigures
    trees: list[TreeFigures]
    rates: Rates
    labels_per_document: np.ndarray  # int64, by document
    documents_per_label: np.ndarray  # int64, by label
    documents: int
    sampled: int
    encoder: EncoderFigures | None = None
    competition: float = 0.0  # work of the competition, as a share of that of the training after it

    @property
    def width(self) -> int:
        """Columns of the dense half."""
        return 0 if self.encoder is None else self.encoder.width

    @property
    def growth(self) -> float:
        """How many times as many documents there are as in the sample."""
        return self.documents / self.sampled

    @property
    def values(self) -> float:
        """Feature values of all documents, of all analyzers together."""
        return self.documents * sum(self.texts.values)

    @property
    def columns(self) -> int:
        """Number of features."""
        return sum(self.texts.columns)

    @property
    def labels(self) -> int:
        """Number of labels."""
        return self.documents_per_label.size

    @property
    def positives(self) -> int:
        """Pairs of a document and one of its labels."""
        return int(self.labels_per_document.sum())

    def levels(self, tree: TreeFigures) -> list[LevelWork]:
        """The work of each level of a tree over all documents."""
        sizes = auto.refined_sizes(self.settings, self.labels)
        if sizes is None:  # plain k-means makes clusters of about these sizes
            sizes = auto.sizes_by_branching(self.labels, self.settings.branching, self.settings.leaf)
        return expected_work([*sizes, self.labels], self.labels_per_document, tree.spread)


def read_problem(
    texts: Sequence[str], Y: sp.csr_matrix, asked: LinearSettings, runtime: Runtime
) -> Problem | None:
    """Sample the documents and train on the sample; None if there are too few to sample."""
    rows = sampled_rows(texts)
    if not rows.size:
        return None
    loaded, threads = memory_in_use(), runtime.thread_count
    settings, _ = auto.with_ngrams(asked, texts)
    settings = auto.for_size(auto.with_costs(settings, Y, None), Y.shape[1])
    sample: Sample = sample_of_texts(texts, rows, settings, threads)
    views, encoder = views_of(settings.views(), sample.words.widths), None
    if isinstance(settings, TransformerSettings):
        encoder = try_encoder(texts, settings, runtime)
        sample = with_vectors(sample, encoder.width, settings)
        views = views if settings.words else []
    trial = try_forest(sample, Y, views, settings, threads)
    competition = 0.0
    if asked.ngrams == "auto" and asked.competition:
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        competition = share_of_training(Y, lengths, settings)
    return Problem(
        settings,
        threads,
        loaded,
        sample.figures,
        trial.trees,
        trial.rates,
        labels_per_document=np.diff(Y.indptr),
        documents_per_label=np.bincount(Y.indices, minlength=Y.shape[1]),
        documents=Y.shape[0],
        sampled=rows.size,
        encoder=encoder,
        competition=competition,
    )


def with_vectors(sample: Sample, width: int, settings: TransformerSettings) -> Sample:
    """The sample with a dense half: random vectors, which take as long as an encoder's."""
    vectors = np.random.default_rng(0).standard_normal((sample.X.rows, width)).astype(np.float32)
    sparse = sample.X.sparse if settings.words else sample.X.sparse[:, :0]
    return sample._replace(X=cat(sparse, vectors, settings.dense_weight))
