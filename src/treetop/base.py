"""What XRLinear and XRTransformer share: settings, prediction, the model folder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from treetop.errors import TreetopError
from treetop.evaluation import metrics
from treetop.explain.explaining import explain
from treetop.explain.explanation import Explanation
from treetop.features.hybrid import Features
from treetop.features.words.tfidf import Tfidf
from treetop.labels.alignment import columns_of
from treetop.model.documents import KeptDocuments
from treetop.model.folder import read_model, write_model
from treetop.model.hub import HubMixin
from treetop.parameters import Parameters
from treetop.ranking.combining import average
from treetop.ranking.ranker import Ranker
from treetop.runtime.parallel import thread_count
from treetop.settings.schema import LinearSettings
from treetop.training.inputs import check_shape, is_text, read_features

Own = TypeVar("Own", bound="Estimator")
Prediction = list[tuple[Any, float]]


class Estimator(Parameters, HubMixin):
    """Settings in the constructor, and all that follows `fit`."""

    settings_: LinearSettings  # those of `fit`, with what was left open decided
    classes_: np.ndarray
    rankers_: list[Ranker]
    tfidf_: Tfidf | None
    feature_widths_: tuple[int, ...]
    n_features_in_: int
    train_counts_: np.ndarray
    train_documents_: int
    documents_: KeptDocuments | None

    # Prediction

    def predict(self, X: Any, k: int = 5, **options: Any) -> list[Prediction]:
        """For each document its best `k` labels as (name, score), best first.

        Options as for `predict_scores`.
        """
        return named(self.predict_scores(X, k, **options), self.classes_)

    def predict_scores(
        self,
        X: Any,
        k: int = 100,
        *,
        beam: int | None = None,
        allow: Iterable[Any] | None = None,
        candidates: sp.csr_matrix | None = None,
        threads: int | None = None,
    ) -> sp.csr_matrix:
        """Scores N x L of the best `k` labels, best first in each row.

        `beam`: nodes followed at each level, more is slower and better. `allow`: names of the only
        labels that may be predicted. `candidates`: N x L, the only labels a document may get.
        """
        self._check_fitted()
        if k < 1:
            raise TreetopError(f"k is {k}: it must be at least 1")
        made = self._features(X)
        threads = thread_count(threads if threads is not None else self.settings_.threads)
        allowed = None if allow is None else columns_of(allow, self.classes_)
        if candidates is not None:
            candidates = sp.csr_matrix(candidates)
            check_shape(candidates, (made.rows, len(self.classes_)), "candidates")
        # A forest's trees disagree at the end of their lists: look further than k before averaging.
        top = k if len(self.rankers_) == 1 else 2 * k
        parts = [
            ranker.predict(made, top, threads, beam, allowed, candidates) for ranker in self.rankers_
        ]
        return parts[0] if len(parts) == 1 else average(parts, k)

    def explain(
        self,
        text: Any,
        label: Any = None,
        *,
        k: int = 5,
        words: int = 20,
        neighbours: int = 3,
    ) -> Explanation | list[Explanation]:
        """Why `text` gets `label`: the words that carried it, the encoder's part, the way to it.

        `label` is a name, a list of names, or None for the best `k`. At most `words` words and, if the
        model was trained with ``keep_documents=True``, `neighbours` training documents are listed. A
        model that learned from a matrix takes a matrix of one row instead of a text.
        """
        self._check_fitted()
        one_text = isinstance(text, str)
        X = self._features([text] if one_text else text)
        if X.rows != 1:
            raise TreetopError(f"explain takes one document, not {X.rows}")
        if label is None:
            numbers = self.predict_scores(X, k).indices.tolist()
        else:
            names = [label] if isinstance(label, str) else label
            numbers = columns_of(names, self.classes_).tolist()
        made = explain(self, text if one_text else None, X, numbers, words, neighbours)
        return made[0] if isinstance(label, str) else made

    def score(self, X: Any, y: Any) -> float:
        """P@1."""
        result = metrics.evaluate(y, self.predict_scores(X, 1), k=(1,), classes=self.classes_)
        return float(result["P@1"])

    def _text_features(self, texts: Any) -> Features:
        """Features of texts as `fit` made them."""
        raise NotImplementedError

    def _features(self, X: Any) -> Features:
        if is_text(X):
            return self._checked(self._text_features(X))
        return self._checked(read_features(X))

    def _checked(self, made: Features) -> Features:
        widths = (made.sparse.shape[1], made.dense.shape[1])
        if widths != self.feature_widths_:
            raise TreetopError(
                f"X has {sum(widths)} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )
        return made

    def _note_widths(self, X: Features) -> None:
        self.feature_widths_ = (X.sparse.shape[1], X.dense.shape[1])
        self.n_features_in_ = sum(self.feature_widths_)

    def _note_documents(
        self, X: Features, Y: sp.csr_matrix, texts: Sequence[str] | None, threads: int
    ) -> None:
        self.train_counts_ = metrics.frequencies(Y)
        self.train_documents_ = Y.shape[0]
        self.documents_ = None
        if self.settings_.keep_documents:
            self.documents_ = KeptDocuments.of(X, Y, texts, threads)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "rankers_")

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise not_fitted(type(self).__name__)

    # The model folder

    def save(self, folder: str | Path, measured: dict[str, Any] | None = None) -> None:
        """Write the model folder; what was there stays whole until the new one is complete."""
        self._check_fitted()
        write_model(self, Path(folder), measured)

    @classmethod
    def load(cls: type[Own], folder: str | Path, verify: bool | None = None) -> Own:
        """The model in a folder. Weights stay on disk until they are needed."""
        model: Own = read_model(cls, Path(folder), verify)
        return model

    def save_more(self, folder: Path) -> None:
        """Write what only this kind of model has."""

    def load_more(self, folder: Path) -> None:
        """Read what only this kind of model has."""


def named(scores: sp.csr_matrix, names: np.ndarray) -> list[Prediction]:
    """Rows of scores as lists of (label name, score)."""
    return [
        [
            (names[label], float(score))
            for label, score in zip(
                scores.indices[start:end].tolist(), scores.data[start:end], strict=True
            )
        ]
        for start, end in zip(scores.indptr[:-1], scores.indptr[1:], strict=True)
    ]


def not_fitted(name: str) -> Exception:
    """scikit-learn's error where it is installed, ours else."""
    message = f"This {name} instance is not fitted yet: call fit first"
    try:
        from sklearn.exceptions import NotFittedError
    except ImportError:
        return TreetopError(message)
    made: Exception = NotFittedError(message)
    return made
