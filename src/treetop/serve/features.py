"""Rows of features in requests, for models that were trained on a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from treetop.serve.errors import RequestError
from treetop.serve.requests import Document, SparseRow

LARGEST = float(np.finfo(np.float32).max)


def check_inputs(documents: Sequence[Document], columns: int | None) -> None:
    """Answer 409 unless the model takes texts, or such rows; `columns` is None if it takes texts."""
    for number, document in enumerate(documents):
        if isinstance(document, str) != (columns is None):
            wanted = "texts, not features" if columns is None else "features, not texts"
            raise RequestError(409, "wrong_input", f"This model takes {wanted}")
        if columns is not None:
            check_row(number, document, columns)


def check_row(number: int, row: Any, columns: int) -> None:
    """Answer 422 unless a row fits a model with so many columns."""
    if isinstance(row, SparseRow):
        last = max(row.indices, default=0)
        wrong = len(row.indices) != len(row.values) or last >= columns
        found = f"{len(row.indices):,} indices up to {last:,} and {len(row.values):,} values"
    else:
        wrong, found = len(row) != columns, f"{len(row):,} features"
    if wrong:
        message = f"features.{number}: {found}, but the model has {columns:,} features"
        raise RequestError(422, "wrong_values", message)
    values = row.values if isinstance(row, SparseRow) else row
    if values and max(map(abs, values)) > LARGEST:
        raise RequestError(422, "wrong_values", f"features.{number}: a value is too large")


def to_matrix(rows: Sequence[object], columns: int) -> sp.csr_matrix:
    """float32 CSR (rows, columns); indices that occur twice are added."""
    indices, values = [], []
    for row in rows:
        if isinstance(row, SparseRow):
            indices.append(np.asarray(row.indices, np.int64))
            values.append(np.asarray(row.values, np.float32))
        else:
            dense = np.asarray(row, np.float32)
            indices.append(np.flatnonzero(dense))
            values.append(dense[indices[-1]])
    ends = np.cumsum([0, *map(len, indices)])
    matrix = sp.csr_matrix(
        (np.concatenate(values), np.concatenate(indices), ends), shape=(len(rows), columns)
    )
    matrix.sum_duplicates()
    return matrix
