"""Prediction: names, scores and probabilities of the best labels."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypedDict, Unpack

import scipy.sparse as sp

from treetop.errors import TreetopError
from treetop.features.given import with_features
from treetop.model.calibration import when_calibrated
from treetop.model.predictions import Predictions, named_predictions
from treetop.model.predictor import check_limits
from treetop.model.saving import SavingMixin
from treetop.model.thresholds import asked_labels
from treetop.runtime import Runtime
from treetop.runtime.checking import check_sparse


class SearchKeywords(TypedDict, total=False):
    """Keyword arguments of `predict_scores` that models read too."""

    beam: int | None
    allow: Iterable[object] | None
    candidates: sp.csr_matrix | None


class PredictKeywords(SearchKeywords, total=False):
    """Keyword arguments of `predict_scores`, which `predict` and `evaluate` pass on."""

    features: Any
    threads: int | None
    runtime: Runtime | None


class PredictingMixin(SavingMixin):
    """Methods that predict. What was learned is in `model_`, which nothing here changes."""

    def predict(
        self,
        X: object,
        k: int | None = None,
        *,
        threshold: float | str | None = None,
        precision: float | None = None,
        probability: bool = False,
        **options: Unpack[PredictKeywords],
    ) -> Predictions:
        """Predict the best labels of each document.

        Parameters
        ----------
        X : iterable of str, or feature matrix
            N documents. A model that was trained on a feature matrix takes a matrix, sparse or dense.
            A text without any word that the model can read, such as an empty one, gets no labels; a
            row of zeros in a matrix gets the labels that are frequent in the training data.
        k : int, default=5
            Number of labels per document. With a `precision` or the name of a threshold, it is the
            maximum, by default a number that almost no document exceeds.
        threshold : float or {'micro-F1', 'macro-F1', 'macro-F1-per-label'}, optional
            Minimum score of a label: of the best `k` labels, those that reach it are predicted. A
            document may have none. A name stands for the minimum probability with the best F1 on
            held-out documents.
        precision : float, optional
            Predict the labels that are right in this share of the cases, such as 0.95: the minimum
            probability follows from held-out documents.
        probability : bool, default=False
            Return probabilities instead of scores; `threshold` is then one of probabilities. So it is
            with a `precision` or the name of a threshold. See `predict_proba`.
        **options
            Keyword arguments of `predict_scores`: ``features``, ``beam``, ``allow``, ``candidates``,
            ``threads``, ``runtime``.

        Returns
        -------
        Predictions
            A list of N lists of (name, score), best first. Names have the type they were trained with,
            scores are floats.

        Examples
        --------
        >>> import treetop
        >>> texts = ["red apple", "green apple", "blue sky"] * 6
        >>> labels = [["red", "fruit"], ["green", "fruit"], ["blue"]] * 6
        >>> model = treetop.XRLinear().fit(texts, labels)
        >>> predictions = model.predict(["a red apple", "a blue sea"], k=2)
        >>> predictions  # doctest: +ELLIPSIS
        [[('fruit', 0.7...), ('red', 0.7...)],
         [('blue', 0.6...), ('fruit', 0.3...)]]
        >>> confident = model.predict(["a red apple", "a blue sea", ""], k=5, threshold=0.5)
        >>> [[name for name, score in row] for row in confident]
        [['fruit', 'red'], ['blue'], []]
        """
        thresholds = self._fitted().thresholds
        chosen = asked_labels(thresholds, k, threshold, precision, probability)
        scores = self._predicted(X, chosen.k, chosen.calibrated, **options)
        return named_predictions(scores, self.classes_, chosen.threshold)

    def predict_scores(
        self,
        X: object,
        k: int = 100,
        *,
        features: object = None,
        beam: int | None = None,
        allow: Iterable[object] | None = None,
        candidates: sp.csr_matrix | None = None,
        threads: int | None = None,
        runtime: Runtime | None = None,
    ) -> sp.csr_matrix:
        """Predict the scores of the best labels as a sparse matrix.

        Parameters
        ----------
        X : iterable of str, or feature matrix
            N documents.
        k : int, default=100
            Number of labels per document.
        features : matrix of shape (N, d), optional
            Precomputed features of the texts `X`, for a model that was trained with them (see `fit`).
            In an ensemble each member takes what it was trained on.
        beam : int, optional
            Number of nodes followed at each level of the label tree. A larger beam is slower and more
            accurate. By default that of the model.
        allow : iterable of names, optional
            The only labels that may be predicted.
        candidates : sparse matrix of shape (N, L), optional
            The only labels that may be predicted for each document.
        threads : int, optional
            Number of CPU threads; by default all cores.
        runtime : Runtime, optional
            Threads, device and precision.

        Returns
        -------
        float32 CSR matrix of shape (N, L)
            Scores, best first in each row. Columns are in the order of `classes_`.

        Examples
        --------
        >>> import treetop
        >>> model = treetop.XRLinear().fit(["red apple", "green grass"] * 5, [["red"], ["green"]] * 5)
        >>> scores = model.predict_scores(["red", "green"], k=1)
        >>> scores.shape, model.classes_[scores.indices].tolist()
        ((2, 2), ['red', 'green'])
        >>> model.predict_scores(["red"], allow=["green"]).indices.tolist()
        [0]
        """
        return self._predicted(
            X,
            k,
            False,
            features=features,
            beam=beam,
            allow=allow,
            candidates=candidates,
            threads=threads,
            runtime=runtime,
        )

    @when_calibrated
    def predict_proba(self, X: object, k: int = 5, **options: Unpack[PredictKeywords]) -> sp.csr_matrix:
        """Predict the probabilities of the best labels as a sparse matrix.

        Parameters
        ----------
        X : iterable of str, or feature matrix
            N documents.
        k : int, default=5
            Number of labels per document.
        **options
            Keyword arguments of `predict_scores`.

        Returns
        -------
        float32 CSR matrix of shape (N, L)
            Of the same labels as `predict_scores`, in the same order, the probability that each is
            right. It does not rise along a row. A model that is not calibrated raises an error: see
            `calibrate`.
        """
        return self._predicted(X, k, True, **options)

    def _predicted(
        self,
        X: object,
        k: int,
        calibrated: bool,
        *,
        features: object = None,
        threads: int | None = None,
        runtime: Runtime | None = None,
        **search: Unpack[SearchKeywords],
    ) -> sp.csr_matrix:
        """Scores, or probabilities if `calibrated`; the rest is as in `predict_scores`."""
        model, place = self._fitted(), self._place(runtime, threads)
        check_limits(k, search.get("beam"))
        candidates = search.get("candidates")
        if candidates is not None and hasattr(candidates, "format"):
            check_sparse(candidates, "candidates")
        documents = self._documents(X, features)
        if place.cluster is not None:
            # Imported on use: a process that only predicts here starts faster.
            from treetop.model.remote import scores_on_cluster

            return scores_on_cluster(model, documents, k, place, calibrated=calibrated, **search)
        computed = model.features(documents, place)
        scores = model.scores_from(computed, k, place, **search)
        return model.probabilities(computed, scores) if calibrated else scores

    def _documents(self, X: object, features: object) -> Any:
        """The documents of a call, with their precomputed features if there are any."""
        if features is not None and not self._fitted().needs_features:
            raise TreetopError(
                "this model computes its features from the texts: leave out features=, or train it "
                "with features="
            )
        return with_features(X, features)

    def _own_runtime(self) -> Runtime:
        """The runtime of calls that do not give one."""
        return Runtime()

    def _place(self, runtime: Runtime | None, threads: int | None = None) -> Runtime:
        """The runtime of a call: options that it leaves at their defaults are the estimator's."""
        place = self._own_runtime()
        if runtime is not None:
            if not isinstance(runtime, Runtime):
                raise TreetopError(f"runtime is {runtime!r}: give a treetop.Runtime(…)")
            place = runtime.over(place)
        return place.changed(threads=threads)
