"""What was learned. Nothing here changes once it is made: a changed model is a new one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from treetop.errors import TreetopError
from treetop.features.feature_map import FeatureMap
from treetop.features.given import is_text, read_features
from treetop.features.hybrid import Features
from treetop.labels.alignment import columns_of, vocabulary
from treetop.labels.vocabulary import Vocabulary
from treetop.model.documents import KeptDocuments
from treetop.ranking.combining import average, combined
from treetop.ranking.ranker import Ranker
from treetop.runtime import Runtime
from treetop.runtime.arrays import Arrays
from treetop.settings.making import to_json
from treetop.settings.schema import LinearSettings

# Labels each member of an ensemble is asked for, per label wanted: members disagree at the end of their
# lists. The trees of one model disagree less.
MEMBERS_LOOK_FURTHER, TREES_LOOK_FURTHER = 4, 2
# A runtime that leaves everything open.
HERE = Runtime()
# What users know a kind of model as.
NAMES = {"xr-linear": "XRLinear", "xr-transformer": "XRTransformer"}


class SavedPart(Protocol):
    """A part of a model that is made from named arrays, and gives them back."""

    arrays: Arrays

    def __init__(self, arrays: Arrays) -> None: ...


# Parts that a model may have, by its field: each is a file of the model folder, read where it is there.
OPTIONAL_PARTS: dict[str, type[SavedPart]] = {"documents": KeptDocuments}


class Predictor(Protocol):
    """What serves, compresses, explains and exports models works with: a model, or several as one.

    The value that `features` returns is understood by the same predictor only.
    """

    @property
    def kind(self) -> str: ...  # noqa: D102
    @property
    def classes(self) -> np.ndarray: ...  # noqa: D102
    @property
    def vocabulary(self) -> Vocabulary: ...  # noqa: D102
    @property
    def label_counts(self) -> np.ndarray: ...  # noqa: D102
    @property
    def train_documents(self) -> int: ...  # noqa: D102
    @property
    def has_encoder(self) -> bool: ...  # noqa: D102
    @property
    def reads_texts(self) -> bool: ...  # noqa: D102
    def features(self, documents: Any, runtime: Runtime = HERE) -> Any:
        """Features of texts, or of the matrix that a model without text features takes."""

    def select(self, features: Any, rows: np.ndarray) -> Any:
        """Features of some of the documents."""

    def scores_from(
        self,
        features: Any,
        k: int,
        runtime: Runtime = HERE,
        *,
        beam: int | None = None,
        allow: Iterable[Any] | None = None,
        candidates: sp.csr_matrix | None = None,
    ) -> sp.csr_matrix:
        """Scores N x L of the best `k` labels of each document, best first in each row."""

    def describe(self) -> dict[str, Any]:
        """What config.json, the model card and the service say of the model."""

    def open_encoders(self, runtime: Runtime = HERE) -> None:
        """Open what is otherwise opened by the first text."""


@dataclass(frozen=True)
class Model:
    """One XR-Linear or XR-Transformer."""

    kind: str  # xr-linear or xr-transformer
    settings: LinearSettings  # of the method, with everything that was left open decided
    classes: np.ndarray  # label names
    feature_map: FeatureMap
    rankers: tuple[Ranker, ...]  # one per tree
    label_counts: np.ndarray  # training documents of each label
    train_documents: int
    documents: KeptDocuments | None = None
    history: tuple[dict[str, Any], ...] = ()  # of fine-tuning
    storage: str = "float32"  # type of the weights in the model folder
    asked: Mapping[str, Any] = field(default_factory=dict)  # settings that were left open, as given

    @property
    def has_encoder(self) -> bool:
        """Whether texts go through an encoder."""
        return self.feature_map.encoder is not None

    @property
    def reads_texts(self) -> bool:
        """Whether the model takes texts, and not only a feature matrix."""
        return self.feature_map.reads_texts

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """Label names to numbers."""
        return vocabulary(self.classes)

    def features(self, documents: Any, runtime: Runtime = HERE) -> Features:
        """Features of texts, or a feature matrix checked and brought into one form."""
        if is_text(documents):
            return self.feature_map.of_texts(documents, runtime)
        return self.checked(read_features(documents))

    def checked(self, X: Features) -> Features:
        """`X`, if it has the columns that the model was trained on."""
        if X.widths != self.feature_map.widths:
            raise TreetopError(
                f"X has {sum(X.widths)} features, but {NAMES[self.kind]} is expecting "
                f"{sum(self.feature_map.widths)} features as input"
            )
        return X

    def select(self, features: Features, rows: np.ndarray) -> Features:
        """Features of some of the documents."""
        return features[rows]

    def scores_from(
        self,
        features: Features,
        k: int,
        runtime: Runtime = HERE,
        *,
        beam: int | None = None,
        allow: Iterable[Any] | None = None,
        candidates: sp.csr_matrix | None = None,
    ) -> sp.csr_matrix:
        """Scores N x L of the best `k` labels: the mean over the trees, best first in each row."""
        check_k(k)
        allowed = None if allow is None else columns_of(allow, self.vocabulary)
        if candidates is not None:
            candidates, shape = sp.csr_matrix(candidates), (features.rows, len(self.classes))
            if candidates.shape != shape:
                raise TreetopError(f"candidates have shape {candidates.shape}, expected {shape}")
        top = k if len(self.rankers) == 1 else TREES_LOOK_FURTHER * k
        parts = [
            ranker.predict(features, top, runtime.thread_count, beam, allowed, candidates)
            for ranker in self.rankers
        ]
        return parts[0] if len(parts) == 1 else average(parts, k)

    def open_encoders(self, runtime: Runtime = HERE) -> None:
        """Open the encoder, if there is one."""
        if self.feature_map.encoder is not None:
            self.feature_map.encoder.open(runtime)

    def describe(self) -> dict[str, Any]:
        """Kind, settings, trees and what is known of the training data, as plain values."""
        words = self.feature_map.words
        return {
            "model": self.kind,
            "settings": to_json(self.settings),
            "asked": dict(self.asked),
            "trees": [str(ranker.tree) for ranker in self.rankers],
            "storage": self.storage,
            "text": False if words is None else words.kind,
            "feature_widths": list(self.feature_map.widths),
            "train_documents": self.train_documents,
            "labels": len(self.classes),
            "data": {
                "labels_per_document": self.label_counts.sum() / max(1, self.train_documents),
                "labels_of_one": int((self.label_counts == 1).sum()),
                "most_frequent": int(self.label_counts.max(initial=0)),
            },
        }


@dataclass(frozen=True)
class EnsembleModel:
    """Several models over the same labels, whose scores are combined label by label."""

    members: tuple[Predictor, ...]
    combine: str = "average"
    weights: tuple[float, ...] = ()
    kind: str = field(default="ensemble", init=False)

    @property
    def classes(self) -> np.ndarray:
        """Label names."""
        return self.members[0].classes

    @property
    def vocabulary(self) -> Vocabulary:
        """Label names to numbers."""
        return self.members[0].vocabulary

    @property
    def label_counts(self) -> np.ndarray:
        """Training documents of each label."""
        return self.members[0].label_counts

    @property
    def train_documents(self) -> int:
        """Number of training documents."""
        return self.members[0].train_documents

    @property
    def has_encoder(self) -> bool:
        """Whether texts go through an encoder."""
        return any(member.has_encoder for member in self.members)

    @property
    def reads_texts(self) -> bool:
        """Whether all members take texts."""
        return all(member.reads_texts for member in self.members)

    def features(self, documents: Any, runtime: Runtime = HERE) -> list[Any]:
        """Features of each member."""
        documents = list(documents) if is_text(documents) else documents
        return [member.features(documents, runtime) for member in self.members]

    def select(self, features: Sequence[Any], rows: np.ndarray) -> list[Any]:
        """Features of some of the documents."""
        return [member.select(own, rows) for member, own in zip(self.members, features, strict=True)]

    def scores_from(
        self,
        features: Sequence[Any],
        k: int,
        runtime: Runtime = HERE,
        *,
        beam: int | None = None,
        allow: Iterable[Any] | None = None,
        candidates: sp.csr_matrix | None = None,
    ) -> sp.csr_matrix:
        """Combined scores N x L of the best `k` labels, best first in each row."""
        check_k(k)
        parts = [
            member.scores_from(
                own, MEMBERS_LOOK_FURTHER * k, runtime, beam=beam, allow=allow, candidates=candidates
            )
            for member, own in zip(self.members, features, strict=True)
        ]
        return combined(parts, self.weights, self.combine, k)

    def open_encoders(self, runtime: Runtime = HERE) -> None:
        """Open the members' encoders."""
        for member in self.members:
            member.open_encoders(runtime)

    def describe(self) -> dict[str, Any]:
        """The members, and how they are combined."""
        return {
            "model": self.kind,
            "members": [member.kind for member in self.members],
            "combine": self.combine,
            "weights": list(self.weights),
            "train_documents": self.train_documents,
            "labels": len(self.classes),
        }


def check_k(k: int) -> None:
    """Raise unless at least one label is asked for."""
    if k < 1:
        raise TreetopError(f"k is {k}: it must be at least 1")
