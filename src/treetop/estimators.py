"""XRLinear and XRTransformer: Algorithm 2 of the paper, top to bottom in `fit`."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from treetop.base import Estimator
from treetop.errors import TreetopError
from treetop.features.encoders.opening import open_encoder
from treetop.features.hybrid import Features, cat, center_of, features, on_dense_half
from treetop.features.words.tfidf import Tfidf
from treetop.features.words.views import views_of
from treetop.labels.tree import Tree
from treetop.model import layout as store
from treetop.ranking.weights import LabelWeights
from treetop.runtime.parallel import Later, short_turns, thread_count
from treetop.runtime.progress import Reporter
from treetop.settings.costs import with_costs
from treetop.settings.length import with_ngrams
from treetop.settings.schema import LinearSettings, TransformerSettings, make_settings, signature_of
from treetop.training.data import Data, read_data
from treetop.training.forest import train_forest
from treetop.training.inputs import check_rows, is_text, read_features, read_labels, read_weights
from treetop.training.run import check_run, history_text
from treetop.training.stages import Training

Linear = TypeVar("Linear", bound="XRLinear")
Transformer = TypeVar("Transformer", bound="XRTransformer")


class XRLinear(Estimator):
    """Tags text with labels from a large vocabulary, by linear rankers on a label tree.

    Settings are keyword arguments; `LinearSettings` lists them with their
    defaults, and ``XRLinear.from_preset("bonsai")`` starts from a named set.
    """

    kind = "xr-linear"
    settings_type = LinearSettings

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)

    __init__.__signature__ = signature_of(LinearSettings)  # type: ignore[attr-defined]

    def fit(
        self: Linear,
        X: Any,
        y: Any,
        *,
        label_names: Sequence[str] | None = None,
        sample_weight: Any = None,
        tree: Tree | None = None,
        report: Reporter | None = None,
    ) -> Linear:
        """Learn from texts (or a feature matrix, or `Features`) and their labels.

        `y` is a list of lists of label names, a matrix N x L of 0/1 or relevances (CSR or array) with
        `label_names`, or a one-dimensional array: one label a document. `sample_weight`: what each
        document counts for. `tree` replaces the trees that would be learned.
        """
        settings = make_settings(self.get_params(), LinearSettings)
        report = report or Reporter()
        threads = thread_count(settings.threads)
        Y, classes = read_labels(y, label_names)

        report.step("text features")
        if is_text(X):
            settings, X = with_ngrams(settings, X)
        tfidf = Tfidf(settings.analysers(), settings.threads) if is_text(X) else None
        texts = X = list(X) if tfidf is not None and settings.keep_documents else X
        made = read_features(X) if tfidf is None else features(tfidf.fit_transform(X))
        check_rows(made, Y)
        weights = read_weights(sample_weight, Y.shape[0])
        if weights is not None and not weights.all():
            kept = np.flatnonzero(weights)
            made, Y, weights = made[kept], Y[kept], weights[kept]
            texts = [texts[row] for row in kept] if settings.keep_documents and tfidf else texts
        settings = with_costs(settings, Y, weights)
        views = [] if tfidf is None else views_of(settings.views(), tfidf.widths)
        self.rankers_ = train_forest(made, Y, weights, settings, threads, report, tree, None, views)
        self.settings_, self.classes_, self.tfidf_ = settings, classes, tfidf
        self._note_widths(made)
        self._note_documents(made, Y, texts if tfidf is not None else None, threads)
        report.close()
        return self

    def _text_features(self, texts: Any) -> Features:
        if self.tfidf_ is None:
            raise TreetopError("this model was trained on a feature matrix, not on text")
        return features(self.tfidf_.transform(texts))


class XRTransformer(Estimator):
    """XR-Transformer: an encoder fine-tuned on ever finer clusters of labels, beside words.

    Settings are keyword arguments; `TransformerSettings` lists them.
    The encoder may be a name on the Hugging Face Hub, a folder, or a file of word vectors.
    """

    kind = "xr-transformer"
    settings_type = TransformerSettings
    settings_: TransformerSettings

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)

    __init__.__signature__ = signature_of(TransformerSettings)  # type: ignore[attr-defined]
    _encoder: Any
    _encoder_folder: Path | None

    def fit(
        self: Transformer,
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
    ) -> Transformer:
        """Learn from texts and their labels; `y` and `sample_weight` as in `XRLinear.fit`.

        `validation`: texts and labels to choose the best weights on. `run`: a folder for checkpoints
        and finished stages. If it holds an earlier run, choose: `resume` continues that run and keeps
        its finished stages, `overwrite` deletes its files and starts again.
        """
        check_run(run, resume, overwrite)
        settings, report = make_settings(self.get_params(), TransformerSettings), report or Reporter()
        if not is_text(X):
            raise TreetopError("XRTransformer reads texts, not a feature matrix: use XRLinear for that")
        training = Training(settings, thread_count(settings.threads), report)
        data = read_data(settings, X, y, label_names, sample_weight, validation)
        settings, _ = with_ngrams(settings, data.texts)
        training.settings = with_costs(settings, data.Y, data.weights)
        training.open_run(run, resume, overwrite, data)
        try:
            self._learn(training, data)
        except RuntimeError as error:
            from treetop.features.encoders.devices import is_device_failure, is_out_of_memory

            if is_out_of_memory(error):
                raise TreetopError(
                    "the device's memory is full: choose a smaller batch, max_length or encoder"
                ) from None
            if not is_device_failure(error):
                raise
            if not settings.fallback:
                raise TreetopError(
                    f"the GPU failed ({str(error).splitlines()[0]}): run again with --resume "
                    "(resume=True), or set fallback=true to go on with the CPU"
                ) from None
            report.note("the GPU failed: going on with the CPU")
            training.settings = replace(training.settings, device="cpu")
            self._learn(training, data)
        report.close()
        return self

    def _learn(self, training: Training, data: Data) -> None:
        """Algorithm 2."""
        settings, Y = training.settings, data.Y
        tokenizer = Later(training.open_tokenizer)
        # To import torch and models takes as long as to read the texts.
        opening = Later(lambda: training.open_encoder(tokenizer.result()))
        with short_turns():
            vectoriser, tfidf, held_tfidf = training.text_features(data)
            opening.check()
            first = training.first_tree(tfidf, data) if settings.fine_tune else None
            training.report.step("tokenizer")
            ahead = training.tokens_ahead(tokenizer.result(), data)
        training.report.step("encoder")
        encoder = opening.result()
        tokens = training.tokens_for(encoder, ahead, data)
        if first is not None and tokens is not None:
            vectors, head = training.fine_tune(encoder, tokens, tfidf, held_tfidf, *first, data)
        else:
            vectors, head = training.embed(encoder, tokens, data), None
        center = center_of(vectors) if settings.center else None
        X = cat(tfidf[:, : words_seen(settings)], vectors, settings.dense_weight, center)
        if head is not None:
            head = LabelWeights(*on_dense_half(*head, vectors, settings.dense_weight, center))
        views = views_of(settings.views(), vectoriser.widths) if settings.words else []
        self.rankers_ = training.rankers(X, data, head, views)
        self.encoder_, self.center_, self.tfidf_ = encoder, center, vectoriser
        self.settings_, self.classes_, self.history_ = settings, data.classes, training.history
        self._note_widths(X)
        self._note_documents(X, Y, data.texts, training.threads)

    def _text_features(self, texts: Any) -> Features:
        assert self.tfidf_ is not None
        texts, settings = list(texts), self.settings_
        vectors = self.encoder_.embed_texts(texts)
        words = self.tfidf_.transform(texts)[:, : words_seen(settings)]
        return cat(words, vectors, settings.dense_weight, self.center_)

    @property
    def encoder_(self) -> Any:
        """The encoder; that of a loaded model is opened when it is first needed."""
        if self._encoder is None:
            chosen = self.settings_
            self._encoder = open_encoder(
                str(self._encoder_folder),
                "pooler" if chosen.pooling == "pooler" else "auto",
                chosen.max_length,
                chosen.dropout,
                chosen.device,
                chosen.precision,
                to_learn=False,
            )
        return self._encoder

    @encoder_.setter
    def encoder_(self, encoder: Any) -> None:
        self._encoder, self._encoder_folder = encoder, None

    def save_more(self, folder: Path) -> None:
        """Write the encoder, its center and the history."""
        if self._encoder_folder is not None:
            shutil.copytree(self._encoder_folder, folder / "encoder")
        else:
            self.encoder_.save(folder / "encoder")
        if self.rankers_[0].storage != "float32":
            from treetop.features.encoders.pretrained import halve

            halve(folder / "encoder")
        if self.center_ is not None:
            store.write_arrays(folder / "center.safetensors", {"center": self.center_})
        (folder / "history.jsonl").write_text(history_text(self.history_), "utf-8")

    def load_more(self, folder: Path) -> None:
        """Note where the encoder is; read its center and the history."""
        self._encoder, self._encoder_folder = None, folder / "encoder"
        self.center_ = None
        if (folder / "center.safetensors").is_file():
            self.center_ = store.read_arrays(folder / "center.safetensors")["center"]
        lines = (folder / "history.jsonl").read_text("utf-8").splitlines()
        self.history_ = [json.loads(line) for line in lines]


def words_seen(settings: TransformerSettings) -> int | None:
    """Columns of Φ_tfidf that the rankers see: all, or none."""
    return None if settings.words else 0
