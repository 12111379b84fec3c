"""Features of held-out documents as if these had not been there when n-grams were learned.

N-grams that only held-out documents have are features without weights. They make rows longer, and as
rows have a fixed length, all their other features smaller, so scores lower than those of new documents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from treetop.features.hybrid import Features, raw_csr

# Entries that are looked at together: what counts them makes copies.
AT_ONCE = 1 << 22


@dataclass(frozen=True)
class KnownFeatures:
    """The n-grams that documents have which are not held out."""

    known: np.ndarray  # bool, by column of the sparse half
    block_of: np.ndarray  # int64, by column: the analyzer that it belongs to

    @classmethod
    def without(cls, X: Features, held: np.ndarray, widths: Sequence[int]) -> KnownFeatures:
        """Those of all documents but the rows `held`; `widths` is the columns per analyzer."""
        columns = X.widths[0]
        own = np.bincount(X.sparse[held].indices, minlength=columns)
        counts = np.zeros(columns, np.int64)
        for start in range(0, X.sparse.nnz, AT_ONCE):
            counts += np.bincount(X.sparse.indices[start : start + AT_ONCE], minlength=columns)
        return cls(counts > own, np.repeat(np.arange(len(widths)), widths))

    def of(self, X: Features) -> Features:
        """X with these n-grams alone; in each row those of an analyzer are as long as all were."""
        rows = np.repeat(np.arange(X.rows), np.diff(X.sparse.indptr))
        indices, values = X.sparse.indices, X.sparse.data
        kept, blocks = self.known[indices], int(self.block_of.max(initial=0)) + 1
        groups = rows * blocks + self.block_of[indices]
        squares, size = values.astype(np.float64) ** 2, X.rows * blocks
        before = np.bincount(groups, squares, size)
        after = np.bincount(groups[kept], squares[kept], size)
        factors = np.sqrt(np.divide(before, after, out=np.ones(size), where=after > 0))
        scaled = (values[kept] * factors[groups[kept]]).astype(np.float32)
        pointers = np.append(0, np.cumsum(np.bincount(rows[kept], minlength=X.rows)))
        return replace(X, sparse=raw_csr(scaled, indices[kept], pointers, X.sparse.shape))
