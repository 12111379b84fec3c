"""What a level asks of each document, kept on the device: R̂ at positives, and the shortlist."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from treetop.features.encoders.devices import to_device


class DeviceRows:
    """Rows of a sparse matrix on the device, spread out there when a batch needs them."""

    def __init__(self, matrix: sp.csr_matrix, device: torch.device) -> None:
        self.columns = int(matrix.shape[1])
        self.starts = to_device(matrix.indptr[:-1].astype(np.int64), device)
        self.counts = to_device(np.diff(matrix.indptr).astype(np.int64), device)
        self.indices = to_device(matrix.indices.astype(np.int32), device)
        self.values = to_device(matrix.data.astype(np.float32), device)
        self.widest = int(np.diff(matrix.indptr).max(initial=0))

    def dense(self, rows: Tensor) -> Tensor:
        """Some rows as a dense matrix.

        As many places per row as the widest of all rows has: the host need not wait for the device.
        """
        spread = torch.zeros(len(rows), self.columns + 1, device=rows.device)
        if self.widest:
            places = torch.arange(self.widest, device=rows.device)
            inside = places < self.counts[rows][:, None]
            at = torch.where(inside, self.starts[rows][:, None] + places, 0)
            # What is not there goes to an extra column that is cut off.
            columns = torch.where(inside, self.indices[at].long(), self.columns)
            spread.scatter_(1, columns, self.values[at])
        return spread[:, : self.columns]


class Targets:
    """R̂[t] and M[t] of every document."""

    def __init__(
        self,
        relevance: sp.csr_matrix,
        clusters: sp.csr_matrix | None,
        child_ptr: np.ndarray,
        weights: np.ndarray | None,
        device: torch.device,
    ) -> None:
        """`clusters`: the nodes above whose children a document is trained on; None: all."""
        self.relevance = DeviceRows(relevance, device)
        self.clusters = None if clusters is None else DeviceRows(clusters, device)
        parents = np.repeat(np.arange(child_ptr.size - 1), np.diff(child_ptr))
        self.parents = to_device(parents, device)
        ones = np.ones(relevance.shape[0], np.float32)
        self.weights = to_device(ones if weights is None else weights, device)

    def __call__(self, rows: Tensor) -> tuple[Tensor, Tensor | None, Tensor]:
        """R̂ at positives, the shortlist and the documents' weights for some rows."""
        listed = None if self.clusters is None else self.clusters.dense(rows)[:, self.parents]
        return self.relevance.dense(rows), listed, self.weights[rows]
