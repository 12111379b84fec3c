"""The stages of XRTransformer's training, each done once a run and remembered in its folder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from treetop.errors import TreetopError
from treetop.features.encoders.opening import is_word_vectors, open_encoder, open_tokenizer
from treetop.features.encoders.subwords import Ragged, tokenize
from treetop.features.hybrid import Features, features
from treetop.features.words.tfidf import Tfidf
from treetop.features.words.views import View
from treetop.labels import tree as trees
from treetop.labels.tree import Tree
from treetop.model.layout import part, prefixed
from treetop.ranking.ranker import Ranker
from treetop.ranking.weights import LabelWeights
from treetop.runtime import Runtime
from treetop.runtime.progress import Reporter
from treetop.settings.schema import RankerSettings, TransformerSettings
from treetop.training.data import Data
from treetop.training.forest import label_features, train_forest
from treetop.training.inputs import check_rows
from treetop.training.run import Run, csr_from_arrays, csr_to_arrays, data_fingerprint

WORDS = (
    "ngrams",
    "min_df",
    "max_df",
    "max_features",
    "sublinear",
    "stop_words",
    "lowercase",
    "shortest_word",
)
LABEL_FEATURES = ("label_features", "tree_features", "tree_passes", "seed")
RANKER = tuple(one.name for one in fields(RankerSettings))
# What the rankers that make P need: their beam is tune_beam, their shortlist M.
MATCHER = (
    *(name for name in RANKER if name not in ("beam", "shortlist", "head_share")),
    "tune_beam",
    "matcher_passes",
    "dense_weight",
    "center",
)
BOOTSTRAP = ("passes", "tolerance")
REFINED_TREE = ("tree", "flat_labels", "branching", "leaf", "balanced", "trees")
ENCODER = ("encoder", "pooling", "max_length")
FINE_TUNING = (
    "budget",
    "batch",
    "learning_rate",
    "head_learning_rate",
    "warmup",
    "weight_decay",
    "clip",
    "dropout",
    "tune_loss",
    "tune_lambda",
    "tune_alpha",
    "tune_cost_sensitive",
    "tune_shortlist",
    "bootstrap",
    "bootstrap_first",
    "validate_every",
    "patience",
    "precision",
    "seed",
)


class Tokens(NamedTuple):
    """Token ids of the documents and of those held back, and where they are cut."""

    own: Ragged
    held: Ragged
    length: int


class Training:
    """Settings, threads, the run and its stages."""

    def __init__(self, settings: TransformerSettings, threads: int, report: Reporter) -> None:
        self.settings, self.threads, self.report = settings, threads, report
        self.run = Run()
        self.history: list[dict[str, Any]] = []

    def open_run(self, folder: str | Path | None, resume: bool, overwrite: bool, data: Data) -> None:
        """Remember stages in a folder."""
        if folder is not None:
            mark = data_fingerprint(
                [*data.texts, "", *data.held_texts, "", *map(str, data.classes)],
                data.Y,
                data.held_labels,
                data.weights,
            )
            self.run = Run(Path(folder), mark, resume, overwrite)

    def text_features(self, data: Data) -> tuple[Tfidf, sp.csr_matrix, sp.csr_matrix]:
        """Φ_tfidf: the fitted vectoriser, and what it makes of the documents and of those held back."""
        self.report.step("text features")
        analysers, threads = self.settings.analysers(), self.settings.threads

        def make() -> dict[str, np.ndarray]:
            tfidf = Tfidf(analysers, threads)
            X = features(tfidf.fit_transform(data.texts)).sparse
            held = features(tfidf.transform(data.held_texts)).sparse
            return {
                **prefixed("tfidf", tfidf.arrays()),
                **csr_to_arrays(X, "X"),
                **csr_to_arrays(held, "held"),
            }

        settings = {**self._chosen(WORDS), "views": self.settings.views()}
        found = self.run.stage("text-features", settings, ["data"], make)
        learned = part(found, "tfidf")
        X = csr_from_arrays(found, "X")
        check_rows(features(X), data.Y)
        return Tfidf.from_arrays(analysers, learned, threads), X, csr_from_arrays(found, "held")

    def first_tree(self, X: sp.csr_matrix, data: Data) -> tuple[Tree, int]:
        """The preliminary tree from Φ_tfidf, and how many of its levels are fine-tuned."""
        from treetop.training.finetune.shape import first_shape

        chosen = self.settings
        sizes, levels = first_shape(chosen.first_tree, data.Y.shape[1], chosen.largest_level)

        def make() -> dict[str, np.ndarray]:
            self.report.step("preliminary tree")
            Z = label_features(
                Features(X, np.zeros((X.shape[0], 0), np.float32)),
                data.Y,
                data.weights,
                chosen,
                self.threads,
            )
            largest = chosen.tree_features
            return trees.balanced_tree(
                Z, sizes, chosen.tree_passes, chosen.seed, self.threads, largest
            ).arrays()

        settings = {**self._chosen(LABEL_FEATURES), "sizes": sizes}
        return Tree.from_arrays(self.run.stage("first-tree", settings, ["text-features"], make)), levels

    def open_tokenizer(self) -> Any:
        """The encoder's tokenizer; None if it has none."""
        return open_tokenizer(self.settings.encoder)

    def open_encoder(self, tokenizer: Any) -> Any:
        """Φ_dnn with the weights it came with."""
        chosen = self.settings
        if is_word_vectors(chosen.encoder) and chosen.fine_tune:
            raise TreetopError("word vectors cannot be fine-tuned: set fine_tune=false")
        return open_encoder(
            chosen.encoder,
            chosen.pooling,
            chosen.max_length,
            chosen.dropout,
            chosen.device,
            chosen.precision,
            to_learn=True,
            tokenizer=tokenizer,
        )

    def tokens(self, tokenizer: Any, length: int, data: Data, stage: str = "tokens") -> Tokens:
        """Token ids of the documents, and of those held back, cut to `length`."""

        def make() -> dict[str, np.ndarray]:
            self.report.step("tokens")
            own, held = (tokenize(tokenizer, texts, length) for texts in (data.texts, data.held_texts))
            return {"ids": own.ids, "ptr": own.ptr, "held.ids": held.ids, "held.ptr": held.ptr}

        settings = {**self._chosen(("encoder",)), "length": length, **self._encoder_files()}
        found = self.run.stage(stage, settings, ["data"], make)
        own, held = Ragged(found["ids"], found["ptr"]), Ragged(found["held.ids"], found["held.ptr"])
        return Tokens(own, held, length)

    def tokens_ahead(self, tokenizer: Any, data: Data) -> Tokens | None:
        """Token ids while the model is still being opened, as long as the tokenizer allows."""
        if tokenizer is None:
            return None
        length = min(self.settings.max_length, int(tokenizer.model_max_length))
        return self.tokens(tokenizer, length, data)

    def tokens_for(self, encoder: Any, ahead: Tokens | None, data: Data) -> Tokens | None:
        """Those made ahead, or new ones if the model has places for fewer."""
        if ahead is None or encoder.max_length == ahead.length:
            return ahead
        return self.tokens(encoder.tokenizer, encoder.max_length, data, "shorter-tokens")

    def fine_tune(
        self,
        encoder: Any,
        tokens: Tokens,
        X: sp.csr_matrix,
        held_X: sp.csr_matrix,
        tree: Tree,
        levels: int,
        data: Data,
    ) -> tuple[np.ndarray, LabelWeights | None]:
        """θ on levels 1 … `levels` of the preliminary tree; Φ_dnn at the end, and the labels' W."""
        from treetop.training.finetune.curriculum import fine_tune
        from treetop.training.finetune.problem import TuningDocuments, TuningProblem
        from treetop.training.finetune.runlog import RunLog

        chosen = self.settings
        runtime = Runtime(
            threads=self.threads,
            device=chosen.device,
            precision=chosen.precision,
            cuda_graphs=chosen.cuda_graphs,
            fused_layers=chosen.fused_layers,
            checkpoint_minutes=chosen.checkpoint_minutes,
            tensorboard=chosen.tensorboard,
            reporter=self.report,
        )
        train = TuningDocuments(X, tokens.own, data.Y, data.weights)
        held_back = None
        if data.held_texts:
            held_back = TuningDocuments(held_X, tokens.held, data.held_labels)
        problem = TuningProblem(train, held_back, tree, levels, chosen, runtime)
        solver = MATCHER if problem.predicts_beams else BOOTSTRAP
        settings = {**self._chosen((*ENCODER, *FINE_TUNING, *solver)), **self._encoder_files()}
        log = RunLog(self.run, {**settings, "levels": levels}, ("first-tree", "tokens"), runtime)
        tuned = fine_tune(encoder, problem, log)
        self.history = log.history
        return tuned

    def embed(self, encoder: Any, tokens: Tokens | None, data: Data) -> np.ndarray:
        """Φ_dnn of the documents with the encoder as it came."""

        def make() -> dict[str, np.ndarray]:
            if tokens is None:
                self.report.step("embedding")
                return {"vectors": encoder.embed_texts(data.texts)}
            advance = self.report.step("embedding", encoder.batches(tokens.own))
            return {"vectors": encoder.embed(tokens.own, advance)}

        settings = {**self._chosen((*ENCODER, "precision")), **self._encoder_files()}
        return np.asarray(self.run.stage("embedding", settings, ["data"], make)["vectors"])

    def rankers(
        self, X: Features, data: Data, head: LabelWeights | None = None, views: Sequence[View] = ()
    ) -> list[Ranker]:
        """The refined trees from Φ_cat and their rankers; `head` is what W makes of Φ_cat."""
        chosen = self.settings

        def make() -> dict[str, np.ndarray]:
            made = train_forest(
                X, data.Y, data.weights, chosen, self.threads, self.report, None, head, views
            )
            arrays = {"count": np.array([len(made)])}
            for number, ranker in enumerate(made):
                arrays |= prefixed(str(number), ranker.arrays())
            return arrays

        last = [name for name in self.run.prints if name.startswith("level-") or name == "embedding"][
            -1
        ]
        settings = self._chosen(
            (*RANKER, *REFINED_TREE, *LABEL_FEATURES, "dense_weight", "center", "words")
        )
        found = self.run.stage("rankers", settings, [last, "text-features"], make)
        count = int(found["count"][0])
        return [Ranker.from_arrays(part(found, str(n)), chosen.ranker()) for n in range(count)]

    def _encoder_files(self) -> dict[str, Any]:
        """Names, sizes and times of an encoder's files, so that another one is noticed."""
        path = Path(self.settings.encoder)
        files = [path] if path.is_file() else sorted(path.rglob("*")) if path.is_dir() else []
        facts = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files]
        return {"files": facts}

    def _chosen(self, names: Iterable[str]) -> dict[str, Any]:
        return {name: getattr(self.settings, name) for name in names}
