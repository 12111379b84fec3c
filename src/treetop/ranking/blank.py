"""Documents in which there was nothing to read get no labels."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp


def without_rows(scores: sp.csr_matrix, blank: np.ndarray) -> sp.csr_matrix:
    """Return scores without those of the rows that `blank` marks; the order in other rows is kept.

    Otherwise such a document would get the labels that are frequent in the training data.
    """
    counts = np.diff(scores.indptr)
    kept = np.repeat(~blank, counts)
    indptr = np.append(0, np.cumsum(np.where(blank, 0, counts)))
    return sp.csr_matrix((scores.data[kept], scores.indices[kept], indptr), shape=scores.shape)
