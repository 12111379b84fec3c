"""XRLinear: TF-IDF features, label trees and linear rankers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self, Unpack

import numpy as np
import scipy.sparse as sp

from treetop import training
from treetop.estimators.learner import Learner
from treetop.features.feature_map import FeatureMap
from treetop.features.given import (
    TextsWithFeatures,
    is_text,
    python_texts,
    read_features,
    with_features,
)
from treetop.features.hybrid import sparse_features
from treetop.features.words.views import views_of
from treetop.kernels import common_kernels
from treetop.kernels.warming import warm_up
from treetop.labels.tree import Tree
from treetop.model.model import Model
from treetop.model.seen import Watched, hashes_of_rows
from treetop.runtime import Runtime
from treetop.runtime.anywhere import using_cluster
from treetop.runtime.memory import memory_limit
from treetop.runtime.notebook import reporting
from treetop.runtime.progress import Reporter
from treetop.settings import auto
from treetop.settings.keywords import LinearKeywords
from treetop.settings.schema import LinearSettings


class XRLinear(Learner):
    """Classifier for many labels: TF-IDF features and linear rankers on label trees.

    Trains in seconds to minutes on a CPU and needs no torch. Texts or feature matrices in, label names
    out. All settings have defaults that suit most data; `XRLinear.from_preset` starts from a named set.

    Attributes
    ----------
    classes_ : array of shape (L,)
        Label names, in the order of the columns of scores.
    settings_ : LinearSettings
        Settings of the fitted model, with everything that was left open decided.
    rankers_ : tuple of Ranker
        Label trees with their weights.
    train_counts_ : array of shape (L,)
        Number of training documents per label.
    train_documents_ : int
        Number of training documents.
    n_features_in_ : int
        Number of features.

    See Also
    --------
    XRTransformer : adds a text encoder, frozen or fine-tuned.
    Ensemble : combines several models.

    Examples
    --------
    >>> import treetop
    >>> texts = ["a red apple", "a green pear", "blue sky"] * 6
    >>> labels = [["red", "fruit"], ["green", "fruit"], ["blue"]] * 6
    >>> model = treetop.XRLinear().fit(texts, labels)
    >>> sorted(name for name, score in model.predict(["a red berry"], k=2)[0])
    ['fruit', 'red']
    >>> model.score(texts, labels)
    1.0
    """

    kind = "xr-linear"

    def __init__(self, **settings: Unpack[LinearKeywords]) -> None:
        super().__init__(**settings)

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        features: Any = None,
        feature_names: Sequence[object] | None = None,
        label_names: Sequence[object] | None = None,
        sample_weight: Any = None,
        validation: tuple[Any, ...] | None = None,
        tree: Tree | None = None,
        verbose: bool | int | None = None,
        report: Reporter | None = None,
        runtime: Runtime | None = None,
    ) -> Self:
        """Train on documents and their labels.

        Parameters
        ----------
        X : iterable of str, matrix of shape (N, d), or Features
            Texts, or a sparse or dense feature matrix. Predictions take a matrix of either kind.
        y : list of lists of names, matrix of shape (N, L), or list or array of shape (N,)
            Label names per document; or a sparse or dense matrix of 0/1 or relevances, or such a data
            frame, whose columns are the labels; or one label per document. Names are strings,
            integers, floats or booleans, all of one type, which predictions and saved models keep.
        features : matrix of shape (N, d), optional
            Precomputed features of the texts `X`, used in place of TF-IDF features: predictions require
            such features too. The texts then serve ``keep_documents=True`` only.
        feature_names : sequence of names, optional
            Names of the columns of a matrix of features, which explanations show instead of numbers.
        label_names : sequence of names, optional
            Names of the columns of a matrix `y`; by default ``"0"``, ``"1"``, ….
        sample_weight : array of shape (N,), optional
            Weight of each document: one of weight 2 counts as two equal documents (exactly so with
            ``tolerance=1e-6`` and enough ``passes``), and one of weight 0 is left out. Only the text
            features, n-grams and their weights, are learned from every document once: ``min_df`` counts
            documents, and weights that sum to 1 must not make all words rare.
        validation : (texts, labels), optional
            Held-out documents, on which the competition compares features; without them, it holds out
            a part of the training documents.
        tree : Tree, optional
            A label tree to use instead of those that would be built: see `treetop.labels.tree`.
        verbose : bool or int, optional
            Show progress; by default as set in the constructor.
        report : Reporter, optional
            Receives progress; the same as ``runtime=Runtime(reporter=…)``.
        runtime : Runtime, optional
            Threads and progress.

        Returns
        -------
        XRLinear
            The fitted estimator itself.

        Examples
        --------
        >>> import treetop
        >>> treetop.XRLinear(trees=1).fit(["red apple", "green grass"] * 5, [["red"], ["green"]] * 5)
        XRLinear(trees=1)

        A matrix of labels:

        >>> from sklearn.preprocessing import MultiLabelBinarizer
        >>> binarizer = MultiLabelBinarizer(sparse_output=True)
        >>> Y = binarizer.fit_transform([["red"], ["green"]] * 5)
        >>> model = treetop.XRLinear()
        >>> model = model.fit(["red apple", "green grass"] * 5, Y, label_names=binarizer.classes_)
        >>> model.predict(["red"], k=1)[0][0][0]
        'red'
        """
        asked = self._method()
        with (
            reporting(self._place(runtime).changed(reporter=report, verbose=verbose)) as place,
            memory_limit(place.memory_bytes),
            using_cluster(place),
        ):
            Y, classes = training.read_labels(y, label_names)
            weights = training.read_weights(sample_weight, Y.shape[0])
            auto.check_levels(asked, len(classes))
            warm_up(common_kernels(), place.threads, place.reporter)
            documents = with_features(X, features)
            held = training.validation_texts(validation, documents, classes)
            names = training.read_feature_names(feature_names, documents)
            model = self._learn(documents, held, Y, classes, weights, tree, asked, place)
            self.model_ = replace(model, feature_names=names)
            training.report_peak(place)
        return self

    def _learn(
        self,
        X: Any,
        validation: training.HeldTexts,
        Y: sp.csr_matrix,
        classes: np.ndarray,
        weights: np.ndarray | None,
        tree: Tree | None,
        asked: LinearSettings,
        place: Runtime,
    ) -> Model:
        """Compute text features, then build label trees and train rankers on them."""
        words, texts, watched, kept, line = None, None, None, None, ""
        settings = auto.with_calibration(asked, Y.shape[1])
        rows = training.counted_rows(weights)
        if isinstance(X, TextsWithFeatures):
            X, texts = X.X, X.texts if settings.keep_documents else None
        elif is_text(X):
            X = python_texts(X)
            if rows is not None:
                X = list(X)
                training.check_count(len(X), Y)
                X, Y, weights = training.selected(rows, X, Y, weights)
            settings, X, line = training.decided_on_texts(settings, X, Y, weights, place, validation)
            place.reporter.step("text features")
            X = watched = Watched(X)
            if settings.keep_documents:
                X = texts = list(X)
            if settings.calibration:
                X = kept = training.KeptTexts(watched, X)
            words, rows_of_texts = training.fit_text_features(
                settings.analysers(), X, place, watched.texts
            )
            X = sparse_features(rows_of_texts)
        X = read_features(X)
        training.check_rows(X, Y)
        if words is None and rows is not None and weights is not None:
            X, Y, weights = X[rows], Y[rows], weights[rows]
            texts = None if texts is None else [texts[row] for row in rows]
        settings = auto.for_size(auto.with_costs(settings, Y, weights), Y.shape[1])
        views = [] if words is None else views_of(settings.views(), words.widths)
        hashes = list(hashes_of_rows(X)) if watched is None else watched.hashes
        held, marks = training.fold_of(hashes, settings)
        forests = training.train_forests(
            X, Y, weights, settings, place, views=views, tree=tree, held=marks
        )
        model = training.learned_model(
            kind=self.kind,
            settings=settings,
            asked=asked,
            classes=classes,
            feature_map=FeatureMap(X.widths, words),
            rankers=forests.rankers,
            X=X,
            Y=Y,
            texts=texts,
            runtime=place,
            hashes=hashes,
            competition=line,
        )
        own_texts = None if kept is None else kept.of(held)
        return training.with_confidence(model, forests.of_fold, X, held, own_texts, Y[held], place)
