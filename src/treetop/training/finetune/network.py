"""The encoder during fine-tuning."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from torch import Tensor, nn

from treetop.features.encoders.attention import RECORDABLE, never_wait
from treetop.features.encoders.devices import DeviceRagged, pick_precision
from treetop.features.encoders.layers import Activations, LowerLayers, UpperLayers
from treetop.features.encoders.subwords import Ragged
from treetop.features.encoders.transformer import Encoder
from treetop.runtime import Runtime
from treetop.runtime.team import Team
from treetop.training.finetune.batches import DeviceBatch
from treetop.training.finetune.embedding import embed_together
from treetop.training.finetune.head import Head
from treetop.training.finetune.optimizer import MasterWeights
from treetop.training.finetune.sharing import DOCUMENTS_PER_PART


class LearningEncoder:
    """θ across all levels: the encoder, its float32 weights and the tokens of the documents.

    The processes of `team` learn it together: each has the same weights.
    """

    def __init__(
        self,
        encoder: Encoder,
        tokens: Ragged,
        runtime: Runtime,
        team: Team | None = None,
        most_documents: int = DOCUMENTS_PER_PART,
        tuned_layers: int | None = None,
    ) -> None:
        """On a CPU, `most_documents` are computed at once. Only `tuned_layers` learn; None: all do."""
        self.team, self.most_documents = team or Team(), most_documents
        self.encoder, self.width, self.max_length = encoder, encoder.width, encoder.max_length
        self.device = next(encoder.parameters()).device
        freeze_unused(encoder)
        if self.device.type == "cuda":
            never_wait(encoder.model)
            if runtime.fused_layers:
                use_fused_layers(encoder)
        self.learner = learner_of(encoder, tuned_layers)
        self.frozen: FrozenLayers | None = None
        if tuned_layers is not None:
            self.frozen = FrozenLayers(LowerLayers.of(encoder, tuned_layers))
        self.weights = MasterWeights(self.learner, pick_precision(runtime.precision, self.device))
        self.own_tokens = tokens
        self.cuda_graphs = runtime.cuda_graphs
        self.adds_in_order = runtime.deterministic

    @cached_property
    def documents(self) -> DeviceRagged | Activations:
        """The training documents, as the learner reads them."""
        if self.frozen is not None:
            return self.frozen.activations(self.own_tokens)
        return DeviceRagged(self.own_tokens, self.device, self.encoder.tokenizer.pad_token_id)

    def __call__(self, batch: DeviceBatch) -> Tensor:
        """Compute Φ_dnn of a batch."""
        vectors: Tensor = self.learner(*self.padded(batch))
        return vectors

    def padded(self, batch: DeviceBatch) -> tuple[Tensor, Tensor | None]:
        """Return what the learner reads of a batch, token ids or vectors, and their mask."""
        return self.documents.padded(*batch)

    @property
    def records_steps(self) -> bool:
        """Whether training steps are recorded as CUDA graphs and replayed."""
        recordable = self.encoder.model.config.model_type in RECORDABLE
        alone = self.team.size == 1 and self.frozen is None
        return self.device.type == "cuda" and self.cuda_graphs and recordable and alone

    @property
    def waits_for_frozen(self) -> bool:
        """Whether the layers that do not learn have not been computed yet."""
        return self.frozen is not None and not self.frozen.computed

    def compute_frozen(self) -> None:
        """Compute the layers that do not learn, for the training documents."""
        if self.frozen is not None:
            self.frozen.activations(self.own_tokens)

    def train(self) -> None:
        """Enable dropout in what learns; `embed` never uses it."""
        self.learner.train()

    def embed(self, tokens: Ragged) -> np.ndarray:
        """Compute Φ_dnn of documents with the current weights: shape (N, width).

        All processes take part; only the leader gets all vectors.
        """
        if self.frozen is None or self.team.cluster is not None:
            return embed_together(self.encoder, tokens, self.team)
        return embed_together(self.learner, self.frozen.activations(tokens), self.team)

    def finish(self) -> None:
        """Convert the encoder to prediction, with the learned weights in float32."""
        self.encoder.eval()
        self.encoder.take_weights(self.weights.state_dict())


class FrozenLayers:
    """The layers that do not learn, and what they have computed; each process does so for itself."""

    def __init__(self, lower: LowerLayers) -> None:
        self.lower = lower
        self.computed: list[tuple[Ragged, Activations]] = []

    def activations(self, tokens: Ragged) -> Activations:
        """The token vectors of documents, which are computed when they are first needed."""
        for known, activations in self.computed:
            if known.ids is tokens.ids:
                return activations
        self.computed.append((tokens, self.lower.activations(tokens)))
        return self.computed[-1][1]


def learner_of(encoder: Encoder, tuned_layers: int | None) -> Encoder:
    """The part of an encoder that learns, which shares its weights."""
    return encoder if tuned_layers is None else UpperLayers.of(encoder, tuned_layers)


class Scorer(nn.Module):
    """Encoder and head as one network: from token ids to logits of shape (documents, nodes)."""

    def __init__(self, encoder: Encoder, head: Head) -> None:
        super().__init__()
        self.encoder, self.head = encoder, head

    def forward(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        """Score the nodes of a level."""
        logits: Tensor = self.head(self.encoder(ids, mask))
        return logits


def freeze_unused(encoder: Encoder) -> None:
    """Freeze the pooler if it is not used, because it has no gradient."""
    pooler: nn.Module | None = getattr(encoder.model, "pooler", None)
    if encoder.pooling != "pooler" and pooler is not None:
        pooler.requires_grad_(False)


def use_fused_layers(encoder: Encoder) -> None:
    """Replace layers by those with faster gradients, if Triton is installed."""
    try:
        from treetop.training.finetune.fused import speed_up
    except ImportError:
        return
    speed_up(encoder.model)
