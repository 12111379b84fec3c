"""Evaluation on documents with known labels, and calibration by them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np

from treetop.base.explaining import ExplainingMixin
from treetop.base.predicting import PredictKeywords
from treetop.features.given import with_features
from treetop.runtime import Runtime

if TYPE_CHECKING:
    from treetop.metrics import Evaluation


class EvaluatingMixin(ExplainingMixin):
    """Methods that compare predictions with known labels, and explain the worst of them."""

    def evaluate(
        self,
        X: Any,
        y: Any,
        k: int | Sequence[int] = (1, 3, 5),
        *,
        columns: Iterable[object] | None = None,
        propensity: str | tuple[float, float] = "default",
        also: Iterable[str] = (),
        **options: Unpack[PredictKeywords],
    ) -> Evaluation:
        """Compute every registered metric on documents with known labels.

        Parameters
        ----------
        X : iterable of str, or feature matrix
            N documents.
        y : list of lists of label names, or matrix of shape (N, number of columns)
            True labels, matched to those of the model by name, in any form that `fit` takes. Labels
            that the model does not know count as missed.
        k : int or sequence of int, default=(1, 3, 5)
            Numbers of ranks to compute the metrics at.
        columns : iterable of names, optional
            Names of the columns if `y` is a matrix whose columns are not `classes_`. A table has its
            own.
        propensity : str or (float, float), default="default"
            Constants of PSP and PSnDCG, see `treetop.metrics.evaluate`.
        also : iterable of str, default=()
            Metrics that are computed on request only, such as ``"PSP_raw"``.
        **options
            Keyword arguments of `predict_scores`.

        Returns
        -------
        Evaluation
            A dict that prints as a table; see `treetop.metrics.evaluate`. Its methods compute
            intervals, results by label and by length of the documents, and the worst documents.

        Examples
        --------
        >>> import treetop
        >>> texts, labels = ["red apple", "green grass"] * 5, [["red"], ["green"]] * 5
        >>> model = treetop.XRLinear().fit(texts, labels)
        >>> model.evaluate(texts, labels, k=1)["P@1"]
        1.0
        """
        from treetop import metrics  # on use: a process that only predicts starts faster

        deepest = int(k) if isinstance(k, int | np.integer) else max(k, default=0)
        scores = self.predict_scores(X, deepest, **options)
        known = metrics.known_labels(self)
        result = metrics.evaluate(
            y, scores, k, columns=columns, propensity=propensity, also=also, **known
        )
        return result.with_documents(with_features(X, options.get("features")), self)

    def score(self, X: Any, y: Any, *, features: Any = None) -> float:
        """Compute P@1, the fraction of documents whose best label is true.

        Parameters
        ----------
        X, y, features
            As for `evaluate`.

        Returns
        -------
        float
            P@1 of `evaluate`. For other metrics see `treetop.scorer`.
        """
        return float(self.evaluate(X, y, features=features)["P@1"])

    def calibrate(
        self, X: Any, y: Any, *, features: Any = None, runtime: Runtime | None = None
    ) -> Self:
        """Make an estimator whose scores are converted to probabilities as new documents show.

        Training does this by itself, with a part of its documents. Imported models, those of older
        folders and ensembles are not calibrated.

        Parameters
        ----------
        X : iterable of str, or feature matrix
            Documents that the model was not trained on: some hundred at least.
        y : list of lists of label names, or matrix
            Their labels, as for `evaluate`.
        features : matrix, optional
            Precomputed features of the texts, as for `predict_scores`.
        runtime : Runtime, optional
            Threads, device and precision.

        Returns
        -------
        estimator
            A new one, with the same model and another calibration.
        """
        from treetop.training.out_of_fold import calibrated_parts  # on use, as in `evaluate`

        documents, model = self._documents(X, features), self._fitted()
        return self._with_parts(calibrated_parts(model, documents, y, self._place(runtime)))

    @abstractmethod
    def _with_parts(self, parts: dict[str, Any]) -> Self:
        """A copy whose model has these optional parts."""
