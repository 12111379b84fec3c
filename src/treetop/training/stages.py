"""The stages of training XRTransformer; each is done once per run and kept in its folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import scipy.sparse as sp

from treetop.features.encoders.opening import TextEncoder
from treetop.features.encoders.subwords import Ragged, token_ids_of
from treetop.features.feature_map import FeatureMap
from treetop.features.hybrid import Features, features
from treetop.features.words.tfidf import Tfidf
from treetop.features.words.views import View
from treetop.labels.kmeans import KMeans
from treetop.labels.tree import Tree
from treetop.ranking.ranker import Ranker
from treetop.ranking.weights import LabelWeights
from treetop.runtime import Runtime
from treetop.runtime.arrays import Arrays, csr_from_arrays, csr_to_arrays, part, prefixed
from treetop.runtime.background import Later
from treetop.runtime.parallel import torch_threads
from treetop.runtime.processes import leave, team_for
from treetop.runtime.team import Team
from treetop.settings import auto
from treetop.settings.declared import declared
from treetop.settings.notation import parse_first_tree
from treetop.settings.parts import MATCHER, RANKER
from treetop.settings.schema import TransformerSettings
from treetop.training.documents import TrainingDocuments
from treetop.training.forest import Forests, label_features, sized_tree, train_forests
from treetop.training.inputs import check_rows
from treetop.training.opening import Opening, Tokens, encoder_files
from treetop.training.run import Run, Stage
from treetop.training.text_features import fit_text_features

if TYPE_CHECKING:  # importing it takes seconds
    from treetop.features.encoders.transformer import Encoder

LABEL_FEATURES = ("label_features", "tree_features", "tree_passes", "seed")
FEATURE_MAP = ("dense_weight", "center", "words")
ENCODER = ("encoder", "pooling", "max_length")
TUNING = (
    "tuned_layers",
    "budget",
    "batch",
    "learning_rate",
    "head_learning_rate",
    "warmup",
    "weight_decay",
    "clip",
    "clip_separately",
    "dropout",
    "tune_loss",
    "tune_weighting",
    "tune_lambda",
    "tune_alpha",
    "tune_cost_sensitive",
    "tune_shortlist",
    "bootstrap",
    "bootstrap_first",
    "bootstrap_weighting",
    "bootstrap_lambda",
    "bootstrap_alpha",
    "bootstrap_passes",
    "bootstrap_tolerance",
    "validate_every",
    "patience",
    "seed",
)
BEAMS = (
    "tune_beam",
    "matcher_passes",
    "matcher_tolerance",
    "matcher_lambda",
    "matcher_alpha",
    "matcher_cost_sensitive",
    "matcher_bias",
    "matcher_prune_below",
    "matcher_score_transform",
)
REFINED_TREE = ("tree", "flat_labels", "branching", "leaf", "balanced", "trees")

TEXT_FEATURES = Stage("text-features", (), ("data",))
PRELIMINARY_TREE = Stage("first-tree", LABEL_FEATURES, ("text-features",))
EMBEDDING = Stage("embedding", ENCODER, ("data",))


def tuning_settings(settings: TransformerSettings) -> tuple[str, ...]:
    """Return the settings that fine-tuning reads: those of rankers only if it predicts P."""
    if settings.tune_shortlist == "beam":
        return (*ENCODER, *TUNING, *MATCHER, *FEATURE_MAP, *BEAMS)
    return (*ENCODER, *TUNING, "passes", "tolerance")


class Training:
    """The training of one model: settings, runtime and run, with a method for each stage."""

    def __init__(self, settings: TransformerSettings, runtime: Runtime, run: Run) -> None:
        self.settings, self.runtime, self.run = settings, runtime, run
        self.history: list[dict[str, Any]] = []
        self.opening = Opening(settings, runtime)
        self._team = Later(lambda: team_for(runtime))

    @property
    def team(self) -> Team:
        """The processes that compute together, of which this one is the leader."""
        return self._team.result()

    def __enter__(self) -> Training:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        leave(self.team, failed=kind is not None)

    def text_features(
        self, data: TrainingDocuments
    ) -> tuple[Tfidf | None, sp.csr_matrix, sp.csr_matrix]:
        """Fit Φ_tfidf; return it with the features of the training and of the held-out documents.

        Precomputed features take its place: there is no Φ_tfidf then.
        """
        if data.features is not None and data.held_features is not None:
            self.run.fingerprint(TEXT_FEATURES.name, {"ready": True}, TEXT_FEATURES.after)
            check_rows(features(data.features), data.Y)
            return None, data.features, data.held_features
        self.runtime.reporter.step("text features")
        analysers, threads = self.settings.analysers(), self.runtime.threads

        def make(_: TransformerSettings) -> Arrays:
            tfidf, X = fit_text_features(analysers, data.texts, self.runtime)
            held = tfidf.transform(data.held_texts, threads)
            return {
                **prefixed("tfidf", tfidf.arrays()),
                **csr_to_arrays(features(X).sparse, "X"),
                **csr_to_arrays(features(held).sparse, "held"),
            }

        with self.opening.meanwhile():
            arrays = self.run.stage(
                TEXT_FEATURES, self.settings, make, analysers=[asdict(a) for a in analysers]
            )
        X = csr_from_arrays(arrays, "X")
        check_rows(features(X), data.Y)
        return Tfidf.from_arrays(analysers, part(arrays, "tfidf")), X, csr_from_arrays(arrays, "held")

    def preliminary_tree(self, tfidf: sp.csr_matrix, data: TrainingDocuments) -> tuple[Tree, int]:
        """Build the preliminary tree from Φ_tfidf; return it with the number of fine-tuned levels."""
        sizes, levels = auto.first_sizes(
            self.settings.first_tree, data.Y.shape[1], self.settings.largest_level
        )

        written = parse_first_tree(self.settings.first_tree)

        def make(settings: TransformerSettings) -> Arrays:
            self.runtime.reporter.step("preliminary tree")
            threads = self.runtime.thread_count
            X = Features(tfidf, np.zeros((tfidf.shape[0], 0), np.float32))
            Z = label_features(X, data.Y, data.weights, settings, threads)
            kmeans = KMeans(settings.tree_passes, settings.seed, threads, settings.tree_features)
            return sized_tree(Z, sizes, written, kmeans).arrays()

        with self.opening.meanwhile():
            arrays = self.run.stage(
                PRELIMINARY_TREE, self.settings, make, sizes=sizes, pecos=written.pecos
            )
        return Tree.from_arrays(arrays), levels

    def encoder_and_tokens(self, data: TrainingDocuments) -> tuple[TextEncoder, Tokens | None]:
        """Return the pre-trained encoder and the documents' tokens; None for static word vectors."""
        self.runtime.reporter.step("tokenizer")
        tokenizer = self.opening.tokenizer()
        tokens = None
        if tokenizer is not None:
            length = min(self.settings.max_length, int(tokenizer.model_max_length))
            with self.opening.meanwhile():
                tokens = self.tokens("tokens", tokenizer, length, data)
        self.runtime.reporter.step("encoder")
        encoder = self.opening.encoder()
        longest = getattr(encoder, "max_length", None)
        if tokens is not None and longest is not None and longest != tokens.length:
            # The model has fewer positions than its tokenizer says.
            tokens = self.tokens("shorter-tokens", tokenizer, longest, data)
        return encoder, tokens

    def tokens(self, name: str, tokenizer: Any, length: int, data: TrainingDocuments) -> Tokens:
        """Tokenize the training and the held-out documents, truncated to `length` tokens."""

        def make(_: TransformerSettings) -> Arrays:
            self.runtime.reporter.step("tokens")
            own = token_ids_of(tokenizer, data.texts, length)
            held = token_ids_of(tokenizer, data.held_texts, length)
            return {"ids": own.ids, "ptr": own.ptr, "held.ids": held.ids, "held.ptr": held.ptr}

        stage = Stage(name, ("encoder",), ("data",))
        files = encoder_files(self.settings.encoder)
        arrays = self.run.stage(stage, self.settings, make, length=length, files=files)
        own, held = Ragged(arrays["ids"], arrays["ptr"]), Ragged(arrays["held.ids"], arrays["held.ptr"])
        return Tokens(own, held, length)

    def fine_tune(
        self,
        encoder: TextEncoder,
        tokens: Tokens | None,
        feature_map: FeatureMap,
        tfidf: sp.csr_matrix,
        held_tfidf: sp.csr_matrix,
        first: tuple[Tree, int],
        data: TrainingDocuments,
    ) -> tuple[np.ndarray, LabelWeights | None]:
        """Fine-tune θ on the preliminary tree; return Φ_dnn(θ*) and the labels' W (see `FineTuned`)."""
        from treetop.training.finetune.curriculum import fine_tune
        from treetop.training.finetune.problem import TuningDocuments, TuningProblem
        from treetop.training.finetune.runlog import RunLog

        assert tokens is not None
        tree, levels = first
        stage = Stage("level-1", tuning_settings(self.settings), ("first-tree", "tokens"))
        held_out = TuningDocuments(held_tfidf, tokens.held, data.held_labels)
        problem = TuningProblem(
            train=TuningDocuments(tfidf, tokens.own, data.Y, data.weights),
            held_out=held_out if data.held_texts else None,
            tree=tree,
            levels=levels,
            feature_map=feature_map,
            settings=declared(self.settings, stage.reads, "fine-tuning"),
            runtime=self.runtime,
        )
        log = RunLog(
            self.run, stage, self.settings, {"levels": levels, **self.encoder_facts()}, self.runtime
        )
        team = self.team
        threads = team.torch_threads(self.runtime.threads, self.runtime.deterministic)
        with torch_threads(threads), team.failures():
            tuned = fine_tune(cast("Encoder", encoder), problem, log, team)
        self.history = log.history
        return tuned

    def embed(self, encoder: TextEncoder, tokens: Tokens | None, data: TrainingDocuments) -> np.ndarray:
        """Compute Φ_dnn of the documents with the frozen encoder."""

        def make(_: TransformerSettings) -> Arrays:
            if tokens is None:
                self.runtime.reporter.step("embedding")
                return {"vectors": encoder.embed_texts(data.texts)}
            from treetop.training.finetune.embedding import FrozenEncoding

            transformer = cast("Encoder", encoder)
            team, runtime = self.team, self.runtime
            batches = -(-transformer.batches(tokens.own) // team.size)
            advance = runtime.reporter.step("embedding", batches)
            encoding = FrozenEncoding(
                transformer, tokens.own, runtime.device, runtime.threads, runtime.deterministic
            )
            with team.failures():
                return {"vectors": encoding.lead(team, advance)}

        arrays = self.run.stage(EMBEDDING, self.settings, make, **self.encoder_facts())
        return np.asarray(arrays["vectors"])

    def encoder_facts(self) -> dict[str, Any]:
        """Return what the vectors of an encoder depend on besides the settings."""
        return {"precision": self.runtime.precision, "files": encoder_files(self.settings.encoder)}

    def rankers(
        self,
        X: Features,
        data: TrainingDocuments,
        head: LabelWeights | None,
        views: Sequence[View],
        held: np.ndarray | None = None,
    ) -> Forests:
        """Build the refined trees from Φ_cat and train their rankers; see `train_forests`."""

        def make(settings: TransformerSettings) -> Arrays:
            forests = train_forests(
                X, data.Y, data.weights, settings, self.runtime, head=head, views=views, held=held
            )
            arrays: Arrays = {"count": np.array([len(forests.rankers)])}
            for number, ranker in enumerate([*forests.rankers, *forests.of_fold]):
                arrays |= prefixed(str(number), ranker.arrays())
            return arrays

        vectors = [name for name in self.run.prints if name.startswith("level-") or name == "embedding"]
        reads = (*RANKER, *REFINED_TREE, *LABEL_FEATURES, *FEATURE_MAP)
        stage = Stage("rankers", tuple(dict.fromkeys(reads)), (vectors[-1], "text-features"))
        seen = self.settings.views() if views else []
        held_out = 0 if held is None else int(held.sum())
        arrays = self.run.stage(stage, self.settings, make, views=seen, held=held_out)
        settings, threads = self.settings.ranker(), self.runtime.thread_count
        count = int(arrays["count"][0])
        rankers = [
            Ranker.from_arrays(part(arrays, str(number)), settings, X.widths, threads)
            for number in range(2 * count if held_out else count)
        ]
        return Forests(rankers[:count], rankers[count:])
