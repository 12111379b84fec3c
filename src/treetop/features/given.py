"""The documents passed to an estimator: texts, or a matrix of features."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from treetop.errors import TreetopError
from treetop.features.hybrid import Features, features


def is_text(X: Any) -> bool:
    """Whether X is a collection of texts; False for matrices of features."""
    if isinstance(X, str):
        raise TreetopError("X is one string: pass a list of texts")
    if isinstance(X, Features) or sp.issparse(X):
        return False
    if isinstance(X, np.ndarray):
        return X.ndim == 1 and X.dtype.kind in "OUT"
    return not (hasattr(X, "__array__") and np.asarray(X).dtype.kind in "biuf")


def read_features(X: Any) -> Features:
    """Features from a sparse matrix, a dense array (documents x features), or `Features`."""
    if isinstance(X, Features):
        return X
    if sp.issparse(X):
        return features(X)
    array = np.asarray(X)
    if array.dtype.kind == "c":
        raise TreetopError("Complex data not supported")
    if array.ndim != 2:
        raise TreetopError(
            f"Expected 2D array, got {array.ndim}D array instead. Reshape your data: X must be a "
            "list of texts or a matrix with one row per document"
        )
    return features(dense=array.astype(np.float32))
