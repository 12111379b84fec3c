"""XRLinear, XRTransformer and Ensemble. `XRTransformer._learn` is Algorithm 2 of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self, Unpack, cast

from treetop.base import FittedMixin
from treetop.errors import TreetopError
from treetop.features.encoders.handle import EncoderHandle
from treetop.features.encoders.opening import TextEncoder
from treetop.features.feature_map import FeatureMap
from treetop.features.given import is_text, read_features
from treetop.features.words.tfidf import fit_tfidf
from treetop.features.words.views import views_of
from treetop.labels.tree import Tree
from treetop.model.folder import read_model
from treetop.model.hub import fetch
from treetop.model.model import EnsembleModel, Model, Predictor
from treetop.parameters import ParametersMixin
from treetop.ranking.combining import COMBINE
from treetop.ranking.ranker import Ranker
from treetop.ranking.weights import LabelWeights
from treetop.runtime import Runtime
from treetop.runtime.progress import Reporter
from treetop.settings import auto
from treetop.settings.keywords import LinearKeywords, TransformerKeywords
from treetop.settings.making import to_parameters
from treetop.settings.schema import LinearSettings, TransformerSettings
from treetop.training.documents import TrainingDocuments, counted_rows, read_documents
from treetop.training.failures import with_fallback
from treetop.training.forest import train_forest
from treetop.training.inputs import check_rows, read_labels, read_weights
from treetop.training.learned import learned_model
from treetop.training.run import check_run
from treetop.training.stages import Training


class Learner(ParametersMixin, FittedMixin):
    """An estimator with settings, which learns one model."""

    kind = "xr-linear"
    model_: Model

    @property
    def settings_(self) -> LinearSettings:
        """Settings of the method, with everything that was left open decided."""
        return self.model_.settings

    @property
    def rankers_(self) -> tuple[Ranker, ...]:
        """One label tree with its weights per entry."""
        return self.model_.rankers

    @property
    def n_features_in_(self) -> int:
        """Columns of the features, of both halves together."""
        return sum(self.model_.feature_map.widths)

    @classmethod
    def holding(cls, model: Predictor, runtime: Runtime | None = None) -> Self:
        """An estimator that holds a model, with its settings."""
        model = cast(Model, model)
        made = cls(**to_parameters(model.settings, model.asked, cls.parameters, runtime))
        made.model_ = model
        return made


class XRLinear(Learner):
    """Tags text with labels from a large vocabulary, by linear rankers on a label tree.

    Settings are keyword arguments; ``XRLinear.from_preset("bonsai")`` starts from a named set.
    """

    kind = "xr-linear"

    def __init__(self, **settings: Unpack[LinearKeywords]) -> None:
        super().__init__(**settings)

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        label_names: Sequence[str] | None = None,
        sample_weight: Any = None,
        tree: Tree | None = None,
        report: Reporter | None = None,
        runtime: Runtime | None = None,
    ) -> Self:
        """Learn from texts (or a feature matrix, or `Features`) and their labels.

        `y` is a list of lists of label names, a matrix N x L of 0/1 or relevances (CSR or array) with
        `label_names`, or a one-dimensional array: one label per document. `sample_weight`: what each
        document counts for. `tree` replaces the trees that would be learned. `runtime`: where the work
        is done, and what it reports.
        """
        asked, place = self._method(), self._place(runtime).changed(reporter=report)
        settings = asked
        Y, classes = read_labels(y, label_names)
        place.reporter.step("text features")
        words, texts = None, None
        if is_text(X):
            settings, X = auto.with_ngrams(settings, X)
            if settings.keep_documents:
                X = texts = list(X)
            words, X = fit_tfidf(settings.analysers(), X, place.threads)
        X = read_features(X)
        check_rows(X, Y)
        weights = read_weights(sample_weight, Y.shape[0])
        if weights is not None and (rows := counted_rows(weights)) is not None:
            X, Y, weights = X[rows], Y[rows], weights[rows]
            texts = None if texts is None else [texts[row] for row in rows]
        settings = auto.with_costs(settings, Y, weights)
        views = [] if words is None else views_of(settings.views(), words.widths)
        rankers = train_forest(X, Y, weights, settings, place, views=views, tree=tree)
        feature_map = FeatureMap(X.widths, words)
        self.model_ = learned_model(
            kind=self.kind,
            settings=settings,
            asked=asked,
            classes=classes,
            feature_map=feature_map,
            rankers=rankers,
            X=X,
            Y=Y,
            texts=texts,
            runtime=place,
        )
        place.reporter.close()
        return self


class XRTransformer(Learner):
    """XR-Transformer: an encoder fine-tuned on ever finer clusters of labels, and TF-IDF features.

    Settings are keyword arguments. The encoder may be a name on the Hugging Face Hub, a folder, or a
    file of word vectors.
    """

    kind = "xr-transformer"

    def __init__(self, **settings: Unpack[TransformerKeywords]) -> None:
        super().__init__(**settings)

    @property
    def settings_(self) -> TransformerSettings:
        """Settings of the method, with everything that was left open decided."""
        return cast(TransformerSettings, self.model_.settings)

    @property
    def encoder_(self) -> TextEncoder:
        """The encoder; that of a loaded model is opened when it is first needed."""
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
        label_names: Sequence[str] | None = None,
        sample_weight: Any = None,
        validation: tuple[Any, Any] | None = None,
        run: str | Path | None = None,
        resume: bool = False,
        overwrite: bool = False,
        report: Reporter | None = None,
        runtime: Runtime | None = None,
    ) -> Self:
        """Learn from texts and their labels; `y`, `sample_weight` and `runtime` as in `XRLinear.fit`.

        `validation`: texts and labels to choose the best weights on. `run`: a folder for checkpoints
        and finished stages; `resume` continues the run that is there, `overwrite` starts it again.
        """
        asked = settings = cast(TransformerSettings, self._method())
        place = self._place(runtime).changed(reporter=report)
        if not is_text(X):
            raise TreetopError("XRTransformer reads texts, not a feature matrix: use XRLinear for that")
        check_run(run, resume, overwrite)
        data = read_documents(settings, X, y, label_names, sample_weight, validation)
        settings, _ = auto.with_ngrams(settings, data.texts)
        settings = auto.with_costs(settings, data.Y, data.weights)
        stages = data.open_run(run, resume, overwrite)

        def learn(place: Runtime) -> Model:
            return self._learn(Training(settings, place, stages), data, asked)

        self.model_ = with_fallback(place, learn)
        place.reporter.close()
        return self

    def _learn(self, training: Training, data: TrainingDocuments, asked: TransformerSettings) -> Model:
        """Algorithm 2: fine-tune level by level, then refine the tree and train rankers on Φ_cat."""
        settings = training.settings
        words, tfidf, held_tfidf = training.text_features(data)
        first = training.preliminary_tree(tfidf, data) if settings.fine_tune else None
        encoder, tokens = training.encoder_and_tokens(data)
        feature_map = FeatureMap(
            (words.features if settings.words else 0, encoder.width),
            words,
            EncoderHandle.holding(encoder, settings.max_length, settings.dropout),
            settings.dense_weight,
            sees_words=settings.words,
        )
        if first is None:
            vectors, head = training.embed(encoder, tokens, data), None
        else:
            vectors, head = training.fine_tune(
                encoder, tokens, feature_map, tfidf, held_tfidf, first, data
            )
            settings = auto.as_tuned(settings, encoder.width, first[0].sizes)
        if settings.center:
            feature_map = feature_map.centered_on(vectors)
        X = feature_map.join(tfidf, vectors)
        if head is not None:
            head = LabelWeights(*feature_map.on_dense_half(head.weight, head.bias, vectors))
        views = views_of(settings.views(), words.widths) if settings.words else []
        rankers = training.rankers(X, data, head, views)
        return learned_model(
            kind=self.kind,
            settings=settings,
            asked=asked,
            classes=data.classes,
            feature_map=feature_map,
            rankers=rankers,
            X=X,
            Y=data.Y,
            texts=data.texts,
            runtime=training.runtime,
            history=training.history,
        )


class Ensemble(FittedMixin):
    """Models over the same labels; their scores are combined label by label.

    `combine`: ``average`` of the scores; ``rank``, the mean of what ranks are worth; ``sigmoid`` or
    ``softmax``, the mean after that function, the latter over a document's listed labels.
    """

    kind = "ensemble"

    def __init__(
        self, members: Sequence[Any], combine: str = "average", weights: Sequence[float] | None = None
    ) -> None:
        if not members:
            raise TreetopError("an ensemble needs at least one model")
        if combine not in COMBINE:
            raise TreetopError(f"combine is {combine!r}: choose one of {', '.join(COMBINE)}")
        self.members, self.combine = list(members), combine
        self.weights = list(weights) if weights is not None else [1.0] * len(members)
        if len(self.weights) != len(members) or min(self.weights) < 0 or not any(self.weights):
            raise TreetopError("weights: give one number of at least 0 per model, not all 0")
        first = list(members[0].classes_)
        for number, member in enumerate(members[1:], start=2):
            if list(member.classes_) != first:
                raise TreetopError(
                    f"model {number} has other labels than the first: train on one data set"
                )

    @property
    def model_(self) -> EnsembleModel:  # type: ignore[override]
        """The members' models as they are now, as one."""
        return EnsembleModel(
            tuple(member.model_ for member in self.members), self.combine, tuple(self.weights)
        )

    def _own_runtime(self) -> Runtime:
        runtime: Runtime = self.members[0]._own_runtime()
        return runtime

    @classmethod
    def holding(cls, model: Predictor, runtime: Runtime | None = None) -> Self:
        """An ensemble of the members of a model."""
        model = cast(EnsembleModel, model)
        members = [estimator_of(member, runtime) for member in model.members]
        return cls(members, model.combine, model.weights)


KINDS: dict[str, type[XRLinear | XRTransformer]] = {
    estimator.kind: estimator for estimator in (XRLinear, XRTransformer)
}


def estimator_of(
    model: Predictor, runtime: Runtime | None = None
) -> XRLinear | XRTransformer | Ensemble:
    """The estimator that holds a model, whatever its kind."""
    kind = Ensemble if isinstance(model, EnsembleModel) else KINDS[model.kind]
    return kind.holding(model, runtime)


def load(
    folder: str | Path, verify: bool | None = None, runtime: Runtime | None = None
) -> XRLinear | XRTransformer | Ensemble:
    """The model in a folder that `save` wrote, whatever its kind."""
    return estimator_of(read_model(Path(folder), verify, runtime), runtime)


def from_pretrained(
    name: str | Path, verify: bool | None = None, runtime: Runtime | None = None, **options: Any
) -> XRLinear | XRTransformer | Ensemble:
    """The model of this name on the Hub, or in a folder, whatever its kind."""
    return load(fetch(name, **options), verify, runtime)
