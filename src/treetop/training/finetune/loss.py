"""Loss of a level: a point-wise loss over the shortlist, weighted by R̂."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F


def pointwise(name: str, logits: Tensor, positive: Tensor) -> Tensor:
    """Compute L(y, w·φ) of each document and node; y is 1 where `positive`, else -1 (0 for BCE)."""
    signed = torch.where(positive, logits, -logits)
    if name == "bce":
        return F.softplus(-signed)
    gap = F.relu(1.0 - signed)
    return gap if name == "hinge" else gap * gap


def level_loss(
    name: str, logits: Tensor, relevance: Tensor, listed: Tensor | None, alpha: float, weights: Tensor
) -> Tensor:
    """Compute Σ_l R̂_l L(y_l, w_l·φ) of each document, over the nodes `listed` (None: all).

    `logits`, `relevance` and `listed` have shape (documents, nodes). `relevance` is R̂ at positives and
    0 elsewhere, where the weight is `alpha`. `weights` are those of the documents. The loss of a
    document is a sum, so that it does not depend on the shortlists of other documents.
    """
    positive = relevance > 0
    cost = torch.where(positive, relevance, alpha)
    if listed is not None:
        cost = cost * listed
    return (cost * pointwise(name, logits, positive)).sum(1) * weights
