"""Training targets of a level on the device: R̂ of the positives, and the shortlist."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from treetop.features.encoders.devices import to_device


class DeviceRows:
    """A sparse matrix on the device, whose rows are converted to dense ones on demand."""

    def __init__(self, matrix: sp.csr_matrix, device: torch.device) -> None:
        self.columns = int(matrix.shape[1])
        self.starts = to_device(matrix.indptr[:-1].astype(np.int64), device)
        self.counts = to_device(np.diff(matrix.indptr).astype(np.int64), device)
        self.indices = to_device(matrix.indices.astype(np.int32), device)
        self.values = to_device(matrix.data.astype(np.float32), device)
        self.widest = int(np.diff(matrix.indptr).max(initial=0))

    def dense(self, rows: Tensor) -> Tensor:
        """Return the given rows as a dense matrix.

        Each row is read with the width of the widest row of all, so that the host does not have to wait
        for the device.
        """
        spread = torch.zeros(len(rows), self.columns + 1, device=rows.device)
        if self.widest:
            places = torch.arange(self.widest, device=rows.device)
            inside = places < self.counts[rows][:, None]
            at = torch.where(inside, self.starts[rows][:, None] + places, 0)
            # Padding is written to an extra column, which is cut off.
            columns = torch.where(inside, self.indices[at].long(), self.columns)
            spread.scatter_(1, columns, self.values[at])
        return spread[:, : self.columns]


def most_candidates(clusters: sp.csr_matrix | None, child_ptr: np.ndarray) -> int:
    """Return the number of candidates of the document that has most; all nodes without `clusters`."""
    if clusters is None:
        return int(child_ptr[-1])
    counts = (clusters != 0) @ np.diff(child_ptr)
    return max(1, int(counts.max(initial=0)))


class Targets:
    """R̂[t], M[t] and the weights of all documents."""

    def __init__(
        self,
        relevance: sp.csr_matrix,
        clusters: sp.csr_matrix | None,
        child_ptr: np.ndarray,
        weights: np.ndarray | None,
        device: torch.device,
    ) -> None:
        """`clusters`, (N, K[t-1]): the parents on whose children a document is trained; None: all."""
        self.relevance = DeviceRows(relevance, device)
        self.clusters = None if clusters is None else DeviceRows(clusters, device)
        # The most nodes that a document is trained on.
        self.candidates = most_candidates(clusters, child_ptr)
        parents = np.repeat(np.arange(child_ptr.size - 1), np.diff(child_ptr))
        self.parents = to_device(parents, device)
        ones = np.ones(relevance.shape[0], np.float32)
        self.weights = to_device(ones if weights is None else weights, device)

    def __call__(self, rows: Tensor) -> tuple[Tensor, Tensor | None, Tensor]:
        """Return R̂ of the positives, the shortlist and the weights of the documents `rows`."""
        listed = None if self.clusters is None else self.clusters.dense(rows)[:, self.parents]
        return self.relevance.dense(rows), listed, self.weights[rows]
