"""P@1 of a level on the held-out documents."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import torch
from torch.nn import functional as F

from treetop.labels.relevance import all_levels
from treetop.training.finetune.head import Head
from treetop.training.finetune.network import LearningEncoder
from treetop.training.finetune.problem import TuningProblem
from treetop.training.finetune.targets import Targets

DOCUMENTS_AT_ONCE = 1024


class Validator:
    """Computes P@1 of level `t` on the held-out documents, with the current encoder and head.

    The best node is taken from the children of the nodes in `P`, which is P[t-1]; None: from all nodes.
    """

    def __init__(
        self,
        problem: TuningProblem,
        t: int,
        encoder: LearningEncoder,
        head: Head,
        P: sp.csr_matrix | None,
    ) -> None:
        assert problem.held_out is not None
        self.encoder, self.head, self.tokens = encoder, head, problem.held_out.tokens
        self.targets = Targets(
            relevance=all_levels(problem.held_out.Y, problem.tree)[t - 1],
            clusters=P,
            child_ptr=problem.tree.child_ptr[t - 1],
            weights=None,
            device=head.weight.device,
        )

    @torch.inference_mode()
    def __call__(self) -> float:
        """Return the share of documents whose best node is a true one.

        All processes embed the documents; the leader finds their best nodes.
        """
        vectors, team = self.encoder.embed(self.tokens), self.encoder.team
        return float(team.agree(self.score(vectors) if team.leads else 0.0))

    def score(self, embedded: np.ndarray) -> float:
        """Return the share of documents whose best node, given their Φ_dnn, is a true one."""
        documents, device = self.tokens.rows, self.head.weight.device
        vectors = torch.from_numpy(embedded).to(device)
        hits = torch.zeros((), device=device)
        for numbers in np.array_split(np.arange(documents), -(-documents // DOCUMENTS_AT_ONCE)):
            rows = torch.from_numpy(numbers).to(device)
            relevance, listed, _ = self.targets(rows)
            logits = F.linear(vectors[rows], self.head.weight, self.head.bias)
            if listed is not None:
                logits = logits.masked_fill(listed == 0, -torch.inf)
            hits += (relevance.gather(1, logits.argmax(1, keepdim=True)) > 0).sum()
        return float(hits) / documents
