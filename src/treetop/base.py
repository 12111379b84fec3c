"""What all estimators share: prediction, explanations, the model folder, the Hub."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self, overload

import numpy as np
import scipy.sparse as sp

from treetop.errors import TreetopError
from treetop.evaluation import metrics
from treetop.explain.explaining import explain
from treetop.explain.explanation import Explanation
from treetop.model.folder import read_model, write_model
from treetop.model.hub import HubMixin, fetch
from treetop.model.model import Predictor, check_k
from treetop.runtime import Runtime

Prediction = list[tuple[Any, float]]


class NotFittedTreetopError(TreetopError, AttributeError):
    """Something is asked of an estimator that `fit` has not been called on."""


class FittedMixin(HubMixin):
    """Everything that follows `fit`. What was learned is in `model_`, and nothing here changes it."""

    kind: ClassVar[str]
    model_: Predictor

    @property
    def classes_(self) -> np.ndarray:
        """Label names."""
        return self._fitted().classes

    @property
    def train_counts_(self) -> np.ndarray:
        """Training documents of each label."""
        return self._fitted().label_counts

    @property
    def train_documents_(self) -> int:
        """Number of training documents."""
        return self._fitted().train_documents

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
        runtime: Runtime | None = None,
    ) -> sp.csr_matrix:
        """Scores N x L of the best `k` labels, best first in each row.

        `beam`: nodes followed at each level; a larger beam is slower and better. `allow`: names of the
        only labels that may be predicted. `candidates`: N x L, the only labels that each document may
        get. `threads`, `runtime`: where the work is done.
        """
        model, place = self._fitted(), self._place(runtime, threads)
        check_k(k)
        X = model.features(X, place)
        return model.scores_from(X, k, place, beam=beam, allow=allow, candidates=candidates)

    @overload
    def explain(
        self,
        text: Any,
        label: str,
        *,
        k: int = ...,
        words: int = ...,
        neighbours: int = ...,
        runtime: Runtime | None = ...,
    ) -> Explanation: ...
    @overload
    def explain(
        self,
        text: Any,
        label: Sequence[Any] | None = ...,
        *,
        k: int = ...,
        words: int = ...,
        neighbours: int = ...,
        runtime: Runtime | None = ...,
    ) -> list[Explanation]: ...
    def explain(
        self,
        text: Any,
        label: Any = None,
        *,
        k: int = 5,
        words: int = 20,
        neighbours: int = 3,
        runtime: Runtime | None = None,
    ) -> Explanation | list[Explanation]:
        """Why `text` gets `label`: the words that carried it, the encoder's part, the path to it.

        `label` is a name, a list of names, or None for the best `k`. At most `words` words are listed
        and, if the model was trained with ``keep_documents=True``, `neighbours` training documents. A
        model that learned from a matrix takes a matrix of one row instead of a text.
        """
        model = self._fitted()
        names = [label] if isinstance(label, str) else label
        explained = explain(
            model,
            text,
            names,
            self._place(runtime),
            k=k,
            words=words,
            neighbours=neighbours,
        )
        return explained[0] if isinstance(label, str) else explained

    def evaluate(
        self, X: Any, y: Any, k: Sequence[int] = (1, 3, 5), *, columns: Any = None, **options: Any
    ) -> dict[str, Any]:
        """Every metric of `treetop.metrics.evaluate` on these documents, labels matched by name.

        `columns`: names of the columns if `y` is a matrix whose columns are not `classes_`. Other
        options as for `predict_scores`.
        """
        counts: dict[str, Any] = {}
        scores = self.predict_scores(X, max(k), **options)
        if self.train_documents_:  # not known of an imported model
            counts = {"train_counts": self.train_counts_, "train_documents": self.train_documents_}
        return metrics.evaluate(y, scores, k, classes=self.classes_, columns=columns, **counts)

    def score(self, X: Any, y: Any) -> float:
        """P@1."""
        return float(self.evaluate(X, y, (1,))["P@1"])

    def save(self, folder: str | Path, measured: dict[str, Any] | None = None) -> None:
        """Write the model folder; what was there stays whole until the new one is complete."""
        write_model(self._fitted(), Path(folder), measured)

    @classmethod
    def load(
        cls, folder: str | Path, verify: bool | None = None, runtime: Runtime | None = None
    ) -> Self:
        """The model in a folder. Weights stay on disk until they are needed."""
        model = read_model(Path(folder), verify, runtime)
        if model.kind != cls.kind:
            raise TreetopError(f"{folder}: holds the model {model.kind!r}, not {cls.kind!r}")
        return cls.holding(model, runtime)

    @classmethod
    def from_pretrained(
        cls,
        name: str | Path,
        verify: bool | None = None,
        runtime: Runtime | None = None,
        **options: Any,
    ) -> Self:
        """The model of this name on the Hub, or in a folder; options are huggingface_hub's."""
        return cls.load(fetch(name, **options), verify, runtime)

    @classmethod
    def holding(cls, model: Predictor, runtime: Runtime | None = None) -> Self:
        """An estimator that holds a model."""
        raise NotImplementedError

    def _own_runtime(self) -> Runtime:
        """Where calls do their work that do not say it."""
        return Runtime()

    def _place(self, runtime: Runtime | None, threads: int | None = None) -> Runtime:
        """Where a call does its work: what `runtime` leaves open is as the estimator has it."""
        place = self._own_runtime()
        if runtime is not None:
            if not isinstance(runtime, Runtime):
                raise TreetopError(f"runtime is {runtime!r}: give a treetop.Runtime(…)")
            place = runtime.over(place)
        return place.changed(threads=threads)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def _fitted(self) -> Predictor:
        """The model; an error if there is none yet."""
        if not self.__sklearn_is_fitted__():
            raise not_fitted(type(self).__name__)
        return self.model_


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
        return NotFittedTreetopError(message)
    error: Exception = NotFittedError(message)
    return error
