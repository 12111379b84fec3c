"""Several models as one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from treetop.errors import TreetopError
from treetop.features.given import TextsWithFeatures, is_text, python_texts
from treetop.labels.vocabulary import Vocabulary
from treetop.model.calibration import Calibration, NotCalibratedError
from treetop.model.model import SavedPart
from treetop.model.predictor import HERE, Predictor, check_limits
from treetop.model.seen import SeenDocuments
from treetop.model.thresholds import Thresholds
from treetop.ranking.combining import LINEAR_RANK, LISTED, combined, parsed_combine, restricted
from treetop.runtime import Runtime

# Optional parts of an ensemble, as those of a model; its members have their own.
ENSEMBLE_PARTS: dict[str, type[SavedPart]] = {
    "calibration": Calibration,
    "thresholds": Thresholds,
}


@dataclass(frozen=True)
class EnsembleModel:
    """Several models over the same labels; their scores are combined label by label."""

    members: tuple[Predictor, ...]
    combine: str = "average"
    weights: tuple[float, ...] = ()
    calibration: Calibration | None = None  # of the combined scores
    thresholds: Thresholds | None = None
    kind: str = field(default="ensemble", init=False)

    @property
    def classes(self) -> np.ndarray:
        """Label names."""
        return self.members[0].classes

    @property
    def vocabulary(self) -> Vocabulary:
        """Label names as strings, and their numbers."""
        return self.members[0].vocabulary

    @property
    def label_counts(self) -> np.ndarray:
        """Training documents per label, of the first member."""
        return self.members[0].label_counts

    @property
    def train_documents(self) -> int:
        """Number of training documents of the first member."""
        return self.members[0].train_documents

    @property
    def preset(self) -> str:
        """Name of the preset that the first member was trained with; empty without one."""
        return self.members[0].preset

    @property
    def widths(self) -> tuple[int, int]:
        """Columns of the sparse and the dense half of the features, of the first member."""
        return self.members[0].widths

    @property
    def ready_columns(self) -> int | None:
        """Columns of the precomputed features of the first member that takes any; None if none does."""
        every = (member.ready_columns for member in self.members)
        return next((columns for columns in every if columns is not None), None)

    @property
    def seen(self) -> SeenDocuments | None:
        """Hashes of the training documents of the first member."""
        return self.members[0].seen

    @property
    def has_encoder(self) -> bool:
        """Whether any member embeds texts by an encoder."""
        return any(member.has_encoder for member in self.members)

    @property
    def reads_texts(self) -> bool:
        """Whether any member takes texts."""
        return any(member.reads_texts for member in self.members)

    @property
    def needs_features(self) -> bool:
        """Whether any member takes precomputed features, alone or with texts."""
        return any(member.needs_features for member in self.members)

    def features(self, documents: Any, runtime: Runtime = HERE) -> list[Any]:
        """Compute the features of each member; of texts with features, each takes what it needs."""
        if not isinstance(documents, TextsWithFeatures) and is_text(documents):
            documents = list(python_texts(documents))
        return [member.features(documents, runtime) for member in self.members]

    def select(self, features: Sequence[Any], rows: np.ndarray) -> list[Any]:
        """Select features of some documents by their row numbers."""
        return [member.select(own, rows) for member, own in zip(self.members, features, strict=True)]

    def scores_from(
        self,
        features: Sequence[Any],
        k: int,
        runtime: Runtime = HERE,
        *,
        beam: int | None = None,
        allow: Iterable[object] | None = None,
        candidates: sp.csr_matrix | None = None,
        raw: bool = False,
    ) -> sp.csr_matrix:
        """Score the best `k` labels, combined over members: CSR (N, L), best first in each row."""
        check_limits(k, beam)
        if raw:
            raise TreetopError("an ensemble has no raw scores: combine its members' instead")
        of_raw, how = parsed_combine(self.combine)
        pairs = list(zip(self.members, features, strict=True))
        lists = None
        if candidates is None:
            lists = [
                member.scores_from(own, LISTED, runtime, beam=beam, allow=allow)
                for member, own in pairs
            ]
            candidates = union_of(lists)
        parts = lists
        if parts is None or of_raw or how != LINEAR_RANK:
            most = max(1, int(np.diff(sp.csr_matrix(candidates).indptr).max(initial=0)))
            parts = [
                member.scores_from(own, most, runtime, allow=allow, candidates=candidates, raw=of_raw)
                for member, own in pairs
            ]
        if how == LINEAR_RANK and lists is not None:  # ranks in each member's own list
            parts = [restricted(part, own) for part, own in zip(parts, lists, strict=True)]
        return combined(parts, self.weights, how, k)

    @property
    def calibrated(self) -> bool:
        """Whether combined scores can be converted to probabilities."""
        return self.calibration is not None

    def lengths(self, features: Sequence[Any]) -> np.ndarray:
        """The number of sparse features of each document for the member that has most of them."""
        pairs = zip(self.members, features, strict=True)
        return np.asarray(np.max([member.lengths(own) for member, own in pairs], axis=0))

    def probabilities(self, features: Sequence[Any], scores: sp.csr_matrix) -> sp.csr_matrix:
        """The probability of each of the combined scores of these documents, in the same order."""
        if self.calibration is None:
            raise NotCalibratedError
        return self.calibration.of(scores, self.lengths(features), self.label_counts)

    def open_encoders(self, runtime: Runtime = HERE) -> None:
        """Open the members' encoders."""
        for member in self.members:
            member.open_encoders(runtime)

    def describe(self) -> dict[str, Any]:
        """Describe the members and their combination in plain values."""
        return {
            "model": self.kind,
            "members": [member.kind for member in self.members],
            "combine": self.combine,
            "weights": list(self.weights),
            "reads_texts": self.reads_texts,
            "needs_features": self.needs_features,
            "calibrated": self.calibrated,
            **({} if self.thresholds is None else {"thresholds": self.thresholds.describe()}),
            "train_documents": self.train_documents,
            "labels": len(self.classes),
        }


def union_of(scores: Sequence[sp.csr_matrix]) -> sp.csr_matrix:
    """Return a matrix with a 1 wherever any of the matrices has a score."""
    marks = (
        sp.csr_matrix((np.ones(matrix.nnz, np.float32), matrix.indices, matrix.indptr), matrix.shape)
        for matrix in scores
    )
    return sp.csr_matrix(sum(marks))
