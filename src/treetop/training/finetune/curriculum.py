"""Algorithm 2's first loop: the encoder learns on ever finer levels of the preliminary tree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import scipy.sparse as sp
import torch

from treetop.features.encoders.attention import never_wait
from treetop.features.encoders.devices import DeviceRagged
from treetop.features.encoders.subwords import Ragged
from treetop.features.encoders.transformer import Encoder
from treetop.features.hybrid import Features, cat, center_of, features
from treetop.labels.relevance import all_levels, positive_weights
from treetop.labels.tree import Tree
from treetop.ranking.ranker import all_below_root, predicted_nodes, shortlist
from treetop.ranking.solver import solve_level
from treetop.ranking.weights import ClusterWeights, LabelWeights
from treetop.runtime.arrays import part
from treetop.runtime.progress import Reporter
from treetop.settings.parts import RankerSettings
from treetop.settings.schema import TransformerSettings
from treetop.training.finetune.batches import Batches
from treetop.training.finetune.budget import steps_by_level
from treetop.training.finetune.checkpoint import Keeper
from treetop.training.finetune.head import Head
from treetop.training.finetune.level import Level
from treetop.training.finetune.optimizer import Masters
from treetop.training.finetune.targets import Targets

ROWS_VALIDATED = 1024
MATCHER_PASSES = 5


@dataclass(frozen=True)
class Documents:
    """What the curriculum knows of some documents."""

    tfidf: sp.csr_matrix
    tokens: Ragged
    Y: sp.csr_matrix
    weights: np.ndarray | None = None


class Curriculum:
    """An encoder, documents, a preliminary tree, and the loop over its levels."""

    def __init__(
        self,
        encoder: Encoder,
        train: Documents,
        held: Documents | None,
        tree: Tree,
        levels: int,
        settings: TransformerSettings,
        precision: torch.dtype,
        threads: int,
        report: Reporter,
        keeper: Keeper,
    ) -> None:
        self.encoder, self.train, self.held, self.tree, self.levels = encoder, train, held, tree, levels
        self.settings, self.threads, self.report, self.keeper = settings, threads, report, keeper
        self.device = next(encoder.parameters()).device
        freeze_unused(encoder)
        if self.device.type == "cuda":
            never_wait(encoder.model)
            if settings.fused_layers:
                use_fused_layers(encoder)
        self.masters = Masters(encoder, precision)
        self.tokens = DeviceRagged(train.tokens, self.device, encoder.tokenizer.pad_token_id)
        self.predicts = settings.tune_shortlist == "beam"
        self.relevance = all_levels(train.Y, tree, settings.tune_cost_sensitive)
        self.matcher_relevance = self.relevance
        sensitive = settings.ranker().cost_sensitive
        if self.predicts and sensitive != settings.tune_cost_sensitive:
            self.matcher_relevance = all_levels(train.Y, tree, sensitive)
        self.steps = steps_by_level(settings.budget, levels, train.tokens.rows, settings.batch)

    def learn(self) -> tuple[np.ndarray, LabelWeights | None]:
        """Algorithm 1 at t = 1 … D̂, θ going on from level to level.

        Φ_dnn at the end, and the labels' W if their level was learned. Where a document learns on all
        nodes P is not wanted: M are then the true parents, whose children W is bootstrapped on.
        """
        M = P = P_held = None
        vectors = np.zeros((0, self.encoder.width), np.float32)
        for t in range(1, self.levels + 1):
            if t > 1:
                M = shortlist(P, self.relevance[t - 2])
            learned = self.keeper.stage(t, partial(self.learn_level, t, M, P_held, vectors))
            self.masters.restore(part(learned, "encoder"))
            vectors = np.asarray(learned["vectors"])
            if t < self.levels and self.predicts:
                self.center = center_of(vectors) if self.settings.center else None
                X = self.phi_cat(self.train, vectors)
                clusters = self.match(t, M, X)
                P = self.top(clusters, t, X, P)
                if self.held is not None:
                    held = self.phi_cat(self.held, np.asarray(learned["held"]))
                    P_held = self.top(clusters, t, held, P_held)
        self.keeper.finish()
        self.encoder.eval()
        self.encoder.take_weights(dict(zip(self.masters.names, self.masters.master, strict=True)))
        if self.levels < self.tree.depth:
            return vectors, None
        weight, bias = (np.asarray(learned[f"head.{name}"]) for name in ("weight", "bias"))
        return vectors, LabelWeights(weight[self.tree.node_of], bias[self.tree.node_of])

    def learn_level(
        self, t: int, M: sp.csr_matrix | None, P_held: sp.csr_matrix | None, before: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Optimise the level's objective from θ[t-1] and a bootstrapped W; θ[t] and its vectors."""
        settings, R = self.settings, self.relevance[t - 1]
        head = Head(self.tree.sizes[t - 1], self.encoder.width, settings.dropout)
        if settings.tune_loss == "bce":
            head.expect(R.getnnz(axis=0) / R.shape[0])
        wanted = settings.bootstrap_first if M is None else settings.bootstrap
        if wanted and self.keeper.place(t) == 0:
            self.report.step(f"bootstrap, level {t} of {self.levels}")
            if M is None:
                before, members = self.encoder.embed(self.train.tokens), all_below_root(R.shape[0])
            else:
                members = M
            head.bootstrap(*self.bootstrapped(t, R, members, before))
        head.to(self.device)
        level = Level(
            t,
            self.encoder,
            self.masters,
            head,
            Targets(
                positive_weights(R, settings.tune_cost_sensitive),
                M if self.predicts else None,
                self.tree.child_ptr[t - 1],
                self.train.weights,
                self.device,
            ),
            self.tokens,
            Batches(self.train.tokens.lengths, settings.batch, settings.seed + t),
            self.steps[t - 1],
            settings,
            self.validator(t, head, P_held),
        )
        self.keeper.restore(level)
        advance = self.report.step(f"fine-tuning, level {t} of {self.levels}", self.steps[t - 1])
        level.run(self.report.note, self.keeper.looker(advance, self.report), self.keeper.save)
        self.keeper.write_history()
        self.report.step(f"embedding, level {t} of {self.levels}")
        learned = level.weights()
        learned["vectors"] = self.encoder.embed(self.train.tokens)
        if self.held is not None and self.predicts:
            learned["held"] = self.encoder.embed(self.held.tokens)
        return learned

    def bootstrapped(
        self, t: int, R: sp.csr_matrix, M: sp.csr_matrix, vectors: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """W[t] by the linear solver on Φ_dnn(θ[t-1]), nodes x columns, and the biases."""
        settings = self.settings
        chosen = replace(
            settings.ranker(),
            lambda_=settings.tune_lambda,
            alpha=settings.tune_alpha,
            bias=1.0,
            loss="logistic" if settings.tune_loss == "bce" else settings.tune_loss,
            cost_sensitive=settings.tune_cost_sensitive,
        )
        clusters = solve_level(
            features(dense=vectors),
            R,
            M,
            self.tree.child_ptr[t - 1],
            chosen,
            seed=settings.seed + t,
            threads=self.threads,
            report=Reporter(),
            name="",
            document_weights=self.train.weights,
        )
        weight = np.concatenate([cluster.dense.T for cluster in clusters])
        return weight, np.concatenate([cluster.biases for cluster in clusters])

    def match(self, t: int, M: sp.csr_matrix | None, X: Features) -> list[ClusterWeights]:
        """W[t] by the linear solver on Φ_cat(θ[t]): it predicts what the next level is trained on."""
        if M is None:
            M = all_below_root(X.rows)
        return solve_level(
            X,
            self.matcher_relevance[t - 1],
            M,
            self.tree.child_ptr[t - 1],
            self.matcher_settings(),
            seed=self.settings.seed + t,
            threads=self.threads,
            report=self.report,
            name=f"matcher, level {t} of {self.levels}",
            document_weights=self.train.weights,
        )

    def top(
        self, clusters: list[ClusterWeights], t: int, X: Features, above: sp.csr_matrix | None
    ) -> sp.csr_matrix:
        """P[t] = Top(W[t]ᵀ Φ_cat(θ[t]), k) among the children of P[t-1]."""
        settings, threads = self.matcher_settings(), self.threads
        return predicted_nodes(clusters, X, self.tree, t, settings, threads=threads, above=above)

    def phi_cat(self, documents: Documents, vectors: np.ndarray) -> Features:
        """Φ_cat(θ[t]); its center is that of the documents learned from."""
        return cat(documents.tfidf, vectors, self.settings.dense_weight, self.center)

    def matcher_settings(self) -> RankerSettings:
        """The final ranker's, with the beam of fine-tuning and fewer passes: only P is wanted."""
        settings = self.settings
        return replace(
            settings.ranker(),
            beam=settings.tune_beam,
            bias=settings.bias or 0.0,
            passes=min(settings.passes, MATCHER_PASSES),
        )

    def validator(self, t: int, head: Head, P: sp.csr_matrix | None) -> Callable[[], float] | None:
        """P@1 at level `t` on documents held back, among the children of the nodes in P, or all."""
        if self.held is None:
            return None
        tokens = self.held.tokens
        truth = all_levels(self.held.Y, self.tree)[t - 1]
        targets = Targets(truth, P, self.tree.child_ptr[t - 1], None, self.device)

        @torch.inference_mode()
        def measure() -> float:
            vectors = torch.from_numpy(self.encoder.embed(tokens)).to(self.device)
            right = torch.zeros((), device=self.device)
            for rows in np.array_split(np.arange(tokens.rows), -(-tokens.rows // ROWS_VALIDATED)):
                on_device = torch.from_numpy(rows).to(self.device)
                relevance, listed, _ = targets(on_device)
                logits = torch.nn.functional.linear(vectors[on_device], head.weight, head.bias)
                if listed is not None:
                    logits = logits.masked_fill(listed == 0, -torch.inf)
                right += (relevance.gather(1, logits.argmax(1, keepdim=True)) > 0).sum()
            return float(right) / tokens.rows

        return measure


def use_fused_layers(encoder: Encoder) -> None:
    """Exchange layers for those with faster gradients, where Triton is installed."""
    try:
        from treetop.training.finetune.fused import speed_up
    except ImportError:
        return
    speed_up(encoder.model)


def freeze_unused(encoder: Encoder) -> None:
    """A pooler that is not used has no gradient."""
    pooler = getattr(encoder.model, "pooler", None)
    if encoder.pooling != "pooler" and pooler is not None:
        pooler.requires_grad_(False)
