"""Several models as one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from treetop.features.given import is_text, python_texts
from treetop.labels.vocabulary import Vocabulary
from treetop.model.predictor import HERE, Predictor, check_limits
from treetop.model.seen import SeenDocuments
from treetop.ranking.combining import combined
from treetop.runtime import Runtime

# Labels per document that each member of an ensemble contributes to the pool of candidates. It does not
# depend on the number of labels requested, and neither does any score.
CANDIDATES_PER_MEMBER = 100


@dataclass(frozen=True)
class EnsembleModel:
    """Several models over the same labels; their scores are combined label by label."""

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
    def widths(self) -> tuple[int, int]:
        """Columns of the sparse and the dense half of the features, of the first member."""
        return self.members[0].widths

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
        """Whether all members take texts."""
        return all(member.reads_texts for member in self.members)

    def features(self, documents: Any, runtime: Runtime = HERE) -> list[Any]:
        """Compute the features of each member."""
        documents = list(python_texts(documents)) if is_text(documents) else documents
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
    ) -> sp.csr_matrix:
        """Score the best `k` labels, combined over members: CSR (N, L), best first in each row."""
        check_limits(k, beam)
        pairs = list(zip(self.members, features, strict=True))
        if candidates is None:
            lists = [
                member.scores_from(own, CANDIDATES_PER_MEMBER, runtime, beam=beam, allow=allow)
                for member, own in pairs
            ]
            candidates = union_of(lists)
        most = max(1, int(np.diff(sp.csr_matrix(candidates).indptr).max(initial=0)))
        parts = [
            member.scores_from(own, most, runtime, allow=allow, candidates=candidates)
            for member, own in pairs
        ]
        return combined(parts, self.weights, self.combine, k)

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
