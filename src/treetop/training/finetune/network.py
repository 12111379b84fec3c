"""The encoder during fine-tuning."""

from __future__ import annotations

import numpy as np
from torch import Tensor, nn

from treetop.features.encoders.attention import RECORDABLE, never_wait
from treetop.features.encoders.devices import DeviceRagged, pick_precision
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
    ) -> None:
        """On a CPU, `most_documents` are computed at once."""
        self.team, self.most_documents = team or Team(), most_documents
        self.encoder, self.width, self.max_length = encoder, encoder.width, encoder.max_length
        self.device = next(encoder.parameters()).device
        freeze_unused(encoder)
        if self.device.type == "cuda":
            never_wait(encoder.model)
            if runtime.fused_layers:
                use_fused_layers(encoder)
        self.weights = MasterWeights(encoder, pick_precision(runtime.precision, self.device))
        self.tokens = DeviceRagged(tokens, self.device, encoder.tokenizer.pad_token_id)
        self.cuda_graphs = runtime.cuda_graphs
        self.adds_in_order = runtime.deterministic

    def __call__(self, batch: DeviceBatch) -> Tensor:
        """Compute Φ_dnn of a batch."""
        vectors: Tensor = self.encoder(*self.padded(batch))
        return vectors

    def padded(self, batch: DeviceBatch) -> tuple[Tensor, Tensor | None]:
        """Return the token ids of a batch and their mask."""
        return self.tokens.padded(*batch)

    @property
    def records_steps(self) -> bool:
        """Whether training steps are recorded as CUDA graphs and replayed."""
        recordable = self.encoder.model.config.model_type in RECORDABLE
        alone = self.team.size == 1
        return self.device.type == "cuda" and self.cuda_graphs and recordable and alone

    def train(self) -> None:
        """Enable dropout; `embed` never uses it."""
        self.encoder.train()

    def embed(self, tokens: Ragged) -> np.ndarray:
        """Compute Φ_dnn of documents with the current weights: shape (N, width).

        All processes take part; only the leader gets all vectors.
        """
        return embed_together(self.encoder, tokens, self.team)

    def finish(self) -> None:
        """Convert the encoder to prediction, with the learned weights in float32."""
        self.encoder.eval()
        self.encoder.take_weights(self.weights.state_dict())


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
