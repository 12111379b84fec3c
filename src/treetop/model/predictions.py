"""Predicted labels with their names: lists that print readably."""

from __future__ import annotations

from numbers import Real
from typing import Any, SupportsIndex, overload

import numpy as np
import scipy.sparse as sp

from treetop.errors import TreetopError
from treetop.labels.types import plain_label
from treetop.runtime.tables import html_table

# Documents shown by `repr` and in notebooks.
SHOWN = 20


class Prediction(list[tuple[Any, float]]):
    """The labels predicted for one document: a list of (name, score), best first.

    Scores are shown with four decimals; the list holds them in full.

    Examples
    --------
    >>> Prediction([("red", 0.98217), ("fruit", 0.75)])
    [('red', 0.9822), ('fruit', 0.7500)]
    """

    def __repr__(self) -> str:
        return "[" + ", ".join(f"({name!r}, {score:.4f})" for name, score in self) + "]"

    def _repr_html_(self) -> str:
        return html_table([(str(name), f"{score:.4f}") for name, score in self], ("label", "score"))


class Predictions(list[Prediction]):
    """The labels predicted for several documents: a list with one `Prediction` per document.

    Examples
    --------
    >>> Predictions([Prediction([("red", 0.98217)]), Prediction([("blue", 0.5)])])
    [[('red', 0.9822)],
     [('blue', 0.5000)]]
    """

    @overload
    def __getitem__(self, index: SupportsIndex, /) -> Prediction: ...
    @overload
    def __getitem__(self, index: slice, /) -> Predictions: ...
    def __getitem__(self, index: Any, /) -> Any:
        """Return the prediction of one document, or `Predictions` for a slice."""
        rows = super().__getitem__(index)
        return Predictions(rows) if isinstance(index, slice) else rows

    def __repr__(self) -> str:
        lines = [repr(row) for row in self[:SHOWN]]
        if len(self) > SHOWN:
            lines.append(f"... {len(self) - SHOWN:,} more documents")
        return "[" + ",\n ".join(lines) + "]"

    def _repr_html_(self) -> str:
        shown = self[:SHOWN]
        ranks = range(1, 1 + max(map(len, shown), default=0))
        rows = [
            [str(number), *(f"{name} ({score:.2f})" for name, score in row)]
            + [""] * (len(ranks) - len(row))
            for number, row in enumerate(shown)
        ]
        table = html_table(rows, ["document", *map(str, ranks)], numbers=False)
        hidden = len(self) - len(shown)
        return table + (f"<p>… and {hidden:,} more documents</p>" if hidden else "")


def named_predictions(
    scores: sp.csr_matrix, names: np.ndarray, threshold: float | np.ndarray | None = None
) -> Predictions:
    """Give the scores of each row the names of their labels.

    Parameters
    ----------
    scores : CSR matrix of shape (N, L)
        Scores, best first in each row.
    names : array of shape (L,)
        Label names.
    threshold : float or array of shape (L,), optional
        Labels with lower scores are left out; an array has the threshold of each label.

    Returns
    -------
    Predictions
        Names as plain Python values (``str``, ``int``), scores as ``float``.
    """
    if threshold is not None:
        scores = reaching(scores, threshold)
    labels, values = scores.indices.tolist(), scores.data.tolist()
    pairs = [(plain_label(names[label]), value) for label, value in zip(labels, values, strict=True)]
    ends = scores.indptr.tolist()
    rows = (pairs[start:end] for start, end in zip(ends, ends[1:]))
    return Predictions(map(Prediction, rows))


def reaching(scores: sp.csr_matrix, threshold: float | np.ndarray) -> sp.csr_matrix:
    """The scores that reach a threshold, or the thresholds of their labels, in their order."""
    # Scores are float32: one of 0.7 reaches the threshold 0.7.
    least = np.asarray(threshold, np.float32)
    kept = scores.data >= (least[scores.indices] if least.ndim else least)
    indptr = np.append(0, np.cumsum(kept))[scores.indptr]
    return sp.csr_matrix((scores.data[kept], scores.indices[kept], indptr), shape=scores.shape)


def check_threshold(threshold: float | None) -> None:
    """Raise unless a threshold is a number."""
    is_number = isinstance(threshold, Real) and not isinstance(threshold, bool)
    if threshold is not None and (not is_number or threshold != threshold):
        raise TreetopError(f"threshold is {threshold!r}: give a number, the minimum score of a label")
