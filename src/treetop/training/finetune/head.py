"""The classification head: W[t] and a bias per node, new at each level."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Head(nn.Module):
    """A linear layer with dropout that scores the nodes of a level."""

    def __init__(self, nodes: int, width: int, dropout: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(nodes, width))
        self.bias = nn.Parameter(torch.zeros(nodes))
        self.dropout = dropout

    def start_from_shares(self, shares: np.ndarray) -> None:
        """Initialize the biases so that the sigmoid of each is the share of documents of its node."""
        with torch.no_grad():
            self.bias.copy_(torch.from_numpy(shares).clamp(1e-6, 1 - 1e-6).logit())

    def start_from(self, weight: np.ndarray, bias: np.ndarray) -> None:
        """Initialize with the solution of a linear solver."""
        with torch.no_grad():
            self.weight.copy_(torch.from_numpy(np.array(weight)))
            self.bias.copy_(torch.from_numpy(np.array(bias)))

    def forward(self, vectors: Tensor) -> Tensor:
        """Return logits of shape (documents, nodes)."""
        return F.linear(F.dropout(vectors, self.dropout, self.training), self.weight, self.bias)

    def penalty(self) -> Tensor:
        """Return ‖W‖²."""
        return self.weight.square().sum()
