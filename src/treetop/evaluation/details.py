"""What an evaluation was computed from: documents, their true labels, and the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from treetop.errors import TreetopError
from treetop.evaluation.context import Context
from treetop.features.given import TextsWithFeatures, is_text, python_texts
from treetop.features.hybrid import Features
from treetop.runtime.tables import beginning


class ExplainsLabels(Protocol):
    """An estimator that can explain its predictions."""

    def explain(self, text: Any, label: Any, *, features: Any = None, neighbours: int = 3) -> Any:
        """Explain the score of a label, or of several."""


@dataclass(frozen=True, eq=False)
class Details:
    """The ranking of N documents and, as far as they were passed, the documents and the model."""

    context: Context
    documents: Any = None
    model: ExplainsLabels | None = None

    @property
    def texts(self) -> Sequence[str] | None:
        """The texts of the documents; None if there are none."""
        documents = self.documents
        if isinstance(documents, TextsWithFeatures):
            return documents.texts
        return documents if isinstance(documents, list | tuple) else None

    def shown_text(self, row: int) -> str:
        """The first characters of a document, on one line; empty if it has no text."""
        return "" if self.texts is None else beginning(self.texts[row]).rstrip()

    def names(self, labels: np.ndarray) -> list[str]:
        """The names of labels by their numbers."""
        return [self.context.names[label] for label in labels.tolist()]

    def true_labels(self, row: int) -> list[str]:
        """The true labels of a document."""
        Y = self.context.Y
        return self.names(Y.indices[Y.indptr[row] : Y.indptr[row + 1]])

    def explained(self, row: int, label: str) -> Any:
        """The explanation of a label of a document; None without a model that explains."""
        if self.model is None or self.documents is None or not hasattr(self.model, "explain"):
            return None
        documents, texts, ready = self.documents, self.texts, None
        if isinstance(documents, TextsWithFeatures):
            ready = documents.X[row : row + 1]
        document = documents[row : row + 1] if texts is None else texts[row]
        return self.model.explain(document, label, features=ready, neighbours=0)


def kept_documents(X: Any) -> Any:
    """Documents as they can be looked up again: None for a stream, which is read only once."""
    if isinstance(X, list | tuple | TextsWithFeatures | Features):
        return X
    if sp.issparse(X):
        return sp.csr_matrix(X)
    if is_text(X):
        return list(python_texts(X)) if hasattr(X, "__len__") else None
    return np.asarray(X)


def check_k(k: int, context: Context) -> int:
    """Return `k`, at most the number of ranks that were evaluated; raise unless it is at least 1."""
    if k < 1:
        raise TreetopError(f"k is {k}: it must be at least 1")
    return min(k, context.k)
