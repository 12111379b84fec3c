"""A model: the immutable result of training. A change makes a new model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from treetop.errors import TreetopError
from treetop.features.feature_map import FeatureMap
from treetop.features.given import (
    check_feature_names,
    feature_names,
    parts_of,
    read_features_like,
)
from treetop.features.hybrid import Features
from treetop.labels.alignment import columns_of, vocabulary
from treetop.labels.types import label_type
from treetop.labels.vocabulary import Vocabulary
from treetop.model.calibration import Calibration, NotCalibratedError
from treetop.model.documents import KeptDocuments
from treetop.model.feature_names import FeatureNames
from treetop.model.predictor import HERE, check_limits
from treetop.model.seen import SeenDocuments
from treetop.model.thresholds import Thresholds
from treetop.ranking.blank import without_rows
from treetop.ranking.pooling import best_of_trees
from treetop.ranking.ranker import Ranker
from treetop.runtime import Runtime
from treetop.runtime.arrays import Arrays
from treetop.settings.making import to_json
from treetop.settings.schema import LinearSettings

# Class names of the kinds of models, for messages.
NAMES = {"xr-linear": "XRLinear", "xr-transformer": "XRTransformer"}


class SavedPart(Protocol):
    """A part of a model that is saved as named arrays."""

    @property
    def arrays(self) -> Arrays:
        """The arrays by name."""

    @classmethod
    def from_arrays(cls, arrays: Arrays, widths: tuple[int, int], labels: int) -> Any:
        """Make the part of a file that may be from a stranger; raise if it does not fit the model."""


# Optional parts of a model by the name of their field. Each is a file of the model folder.
OPTIONAL_PARTS: dict[str, type[SavedPart]] = {
    "documents": KeptDocuments,
    "seen": SeenDocuments,
    "feature_names": FeatureNames,
    "calibration": Calibration,
    "thresholds": Thresholds,
}


@dataclass(frozen=True)
class Model:
    """One XR-Linear or XR-Transformer model."""

    kind: str  # xr-linear or xr-transformer
    settings: LinearSettings  # of the method, with everything that was left open decided
    classes: np.ndarray  # label names, (L,)
    feature_map: FeatureMap
    rankers: tuple[Ranker, ...]  # one per tree
    label_counts: np.ndarray  # training documents per label, (L,)
    train_documents: int
    documents: KeptDocuments | None = None
    seen: SeenDocuments | None = None  # hashes of the training documents
    feature_names: FeatureNames | None = None  # of features that were passed as a matrix
    calibration: Calibration | None = None  # from scores to probabilities
    thresholds: Thresholds | None = None  # of probabilities, from which on labels are chosen
    history: tuple[dict[str, Any], ...] = ()  # of fine-tuning
    storage: str = "float32"  # type of the weights in the model folder
    asked: Mapping[str, Any] = field(default_factory=dict)  # original values of decided settings
    preset: str = ""  # name of the preset it was trained with, if any
    competition: str = ""  # a line that says what a competition has decided, and why

    def __repr__(self) -> str:
        trees = ", ".join(str(ranker.tree) for ranker in self.rankers)
        sizes = f"{self.classes.size:,} labels, {self.train_documents:,} training documents"
        return f"<Model {self.kind}: {sizes}, trees {trees}>"

    @property
    def widths(self) -> tuple[int, int]:
        """Columns of the sparse and the dense half of the features."""
        return self.feature_map.widths

    @property
    def has_encoder(self) -> bool:
        """Whether texts are embedded by an encoder."""
        return self.feature_map.encoder is not None

    @property
    def reads_texts(self) -> bool:
        """Whether the model takes texts; otherwise it takes a feature matrix."""
        return self.feature_map.reads_texts

    @property
    def needs_features(self) -> bool:
        """Whether the model takes precomputed features, alone or with texts."""
        return self.feature_map.needs_features

    @property
    def ready_columns(self) -> int | None:
        """Columns of the precomputed features it takes, alone or with texts; None if it takes none."""
        if not self.needs_features:
            return None
        return self.widths[0] if self.reads_texts else sum(self.widths)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """Label names as strings, and their numbers."""
        return vocabulary(self.classes)

    def features(self, documents: object, runtime: Runtime = HERE) -> Features:
        """Compute features of texts, or check and convert a feature matrix.

        Of texts with precomputed features, the model takes what it was trained on.
        """
        texts, ready = parts_of(documents)
        if ready is None or (texts is not None and self.reads_texts):
            assert texts is not None
            return self.feature_map.of_texts(texts, runtime, ready)
        if self.feature_names is not None and feature_names(ready):
            check_feature_names(ready, self.feature_names.listed())
        return self.checked(read_features_like(ready, self.widths))

    def checked(self, X: Features) -> Features:
        """Return `X`; raise unless it has as many columns as the features of the training data."""
        if X.widths != self.widths:
            if self.reads_texts and sum(X.widths) == self.ready_columns:
                raise TreetopError(
                    "this model was trained on texts with precomputed features: give the texts too, "
                    "and these features as features="
                )
            raise TreetopError(
                f"X has {sum(X.widths)} features, but {NAMES[self.kind]} is expecting "
                f"{sum(self.widths)} features as input"
            )
        return X

    def feature_name(self, feature: int) -> str:
        """The name of a column of the sparse half that was passed as a matrix, or its number."""
        if self.feature_names is None:
            return f"feature {feature}"
        return self.feature_names.name_of(feature)

    def select(self, features: Features, rows: np.ndarray) -> Features:
        """Select features of some documents by their row numbers."""
        return features[rows]

    def scores_from(
        self,
        features: Features,
        k: int,
        runtime: Runtime = HERE,
        *,
        beam: int | None = None,
        allow: Iterable[object] | None = None,
        candidates: sp.csr_matrix | None = None,
        raw: bool = False,
    ) -> sp.csr_matrix:
        """Score the best `k` labels, as the mean over the trees: CSR (N, L), best first in each row.

        `raw` gives the raw scores of the labels' rankers, without those of the nodes above.
        """
        check_limits(k, beam)
        allowed = None if allow is None else columns_of(allow, self.vocabulary)
        if candidates is not None:
            candidates, shape = sp.csr_matrix(candidates), (features.rows, len(self.classes))
            if candidates.shape != shape:
                raise TreetopError(f"candidates have shape {candidates.shape}, expected {shape}")
        rankers, threads = self.rankers, runtime.thread_count
        if raw:
            rankers = tuple(map(with_raw_scores, rankers))
        if len(rankers) == 1:
            scores = rankers[0].predict(features, k, threads, beam, allowed, candidates)
        else:
            scores = best_of_trees(rankers, features, k, threads, beam, allowed, candidates)
        return scores if features.blank is None else without_rows(scores, features.blank)

    @property
    def calibrated(self) -> bool:
        """Whether scores can be converted to probabilities."""
        return self.calibration is not None

    def lengths(self, features: Features) -> np.ndarray:
        """The number of sparse features of each document, int64: 0 if there is no sparse half."""
        return np.diff(features.sparse.indptr)

    def probabilities(self, features: Features, scores: sp.csr_matrix) -> sp.csr_matrix:
        """The probability of each of the scores of these documents, in the same order."""
        if self.calibration is None:
            raise NotCalibratedError
        return self.calibration.of(scores, self.lengths(features), self.label_counts)

    def open_encoders(self, runtime: Runtime = HERE) -> None:
        """Open the encoder, if the model has one."""
        if self.feature_map.encoder is not None:
            self.feature_map.encoder.open(runtime)

    def describe(self) -> dict[str, Any]:
        """Describe settings, trees and training data in plain values."""
        words = self.feature_map.words
        return {
            "model": self.kind,
            "settings": to_json(self.settings),
            "asked": dict(self.asked),
            **({"preset": self.preset} if self.preset else {}),
            **({"competition": self.competition} if self.competition else {}),
            "trees": [str(ranker.tree) for ranker in self.rankers],
            "storage": self.storage,
            "text": False if words is None else words.kind,
            "label_type": label_type(self.classes),
            "reads_texts": self.reads_texts,
            "needs_features": self.needs_features,
            "feature_widths": list(self.widths),
            "calibrated": self.calibrated,
            **({} if self.thresholds is None else {"thresholds": self.thresholds.describe()}),
            "train_documents": self.train_documents,
            "labels": len(self.classes),
            "data": {
                "labels_per_document": self.label_counts.sum() / max(1, self.train_documents),
                "labels_of_one": int((self.label_counts == 1).sum()),
                "most_frequent": int(self.label_counts.max(initial=0)),
            },
        }


def with_raw_scores(ranker: Ranker) -> Ranker:
    """A ranker whose scores are the raw ones of its labels."""
    return replace(ranker, settings=replace(ranker.settings, score_transform="identity"))
