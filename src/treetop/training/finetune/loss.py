"""The objective of a level: a point-wise loss over the shortlist, weighted by R̂."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F


def pointwise(name: str, logits: Tensor, positive: Tensor) -> Tensor:
    """L(y, w·φ) of each document and node; y is 1 where `positive`, else -1 (BCE: 0)."""
    signed = torch.where(positive, logits, -logits)
    if name == "bce":
        return F.softplus(-signed)
    gap = F.relu(1.0 - signed)
    return gap if name == "hinge" else gap * gap


def level_loss(
    name: str, logits: Tensor, relevance: Tensor, listed: Tensor | None, alpha: float, weights: Tensor
) -> Tensor:
    """Σ_l R̂_l L(y_l, w_l·φ) of each document, over the nodes `listed` (None: all).

    `relevance` is R̂ at positives and 0 elsewhere; negatives weigh `alpha`. `weights` are the
    documents' own. A sum, not a mean: what one document costs does not depend on another's shortlist.
    """
    positive = relevance > 0
    cost = torch.where(positive, relevance, alpha)
    if listed is not None:
        cost = cost * listed
    return (cost * pointwise(name, logits, positive)).sum(1) * weights
