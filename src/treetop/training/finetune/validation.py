"""P@1 of a level on the held-out documents."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import torch
from torch.nn import functional as F

from treetop.features.encoders.subwords import Ragged
from treetop.labels.relevance import all_levels
from treetop.training.finetune.head import Head
from treetop.training.finetune.network import LearningEncoder
from treetop.training.finetune.problem import TuningProblem
from treetop.training.finetune.targets import Targets

DOCUMENTS_AT_ONCE = 1024


class Validator:
    """Computes P@1 with the current weights of encoder and head."""

    def __init__(self, encoder: LearningEncoder, head: Head, tokens: Ragged, targets: Targets) -> None:
        """`targets` hold the true nodes, and the shortlist from which the best node is taken."""
        self.encoder, self.head, self.tokens, self.targets = encoder, head, tokens, targets

    @torch.inference_mode()
    def __call__(self) -> float:
        """Return the share of documents whose best node is a true one."""
        documents, device = self.tokens.rows, self.head.weight.device
        vectors = torch.from_numpy(self.encoder.embed(self.tokens)).to(device)
        hits = torch.zeros((), device=device)
        for numbers in np.array_split(np.arange(documents), -(-documents // DOCUMENTS_AT_ONCE)):
            rows = torch.from_numpy(numbers).to(device)
            relevance, listed, _ = self.targets(rows)
            logits = F.linear(vectors[rows], self.head.weight, self.head.bias)
            if listed is not None:
                logits = logits.masked_fill(listed == 0, -torch.inf)
            hits += (relevance.gather(1, logits.argmax(1, keepdim=True)) > 0).sum()
        return float(hits) / documents


def validator(
    problem: TuningProblem, t: int, encoder: LearningEncoder, head: Head, P: sp.csr_matrix | None
) -> Validator | None:
    """Create the validator of level `t`, among the children of P[t-1]; None without documents."""
    held_back = problem.held_back
    if held_back is None:
        return None
    targets = Targets(
        relevance=all_levels(held_back.Y, problem.tree)[t - 1],
        clusters=P,
        child_ptr=problem.tree.child_ptr[t - 1],
        weights=None,
        device=head.weight.device,
    )
    return Validator(encoder, head, held_back.tokens, targets)
