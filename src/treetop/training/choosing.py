"""Fits thresholds to the probabilities of held-out documents.

Where a threshold is chosen, probabilities stand for how often labels are right: sums of them vary less
than counts of true labels.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from treetop.model.thresholds import Thresholds

# Points of the curve of precision, and thresholds that are tried for the macro-F1.
POINTS, TRIED = 200, 100
# A label needs so many probabilities, with at least such a sum, for a threshold of its own.
ENOUGH, ENOUGH_TRUE = 20, 5.0
# Share of the documents that have no more labels than the maximum per document.
MOST_DOCUMENTS = 0.995


def fit_thresholds(probabilities: sp.csr_matrix, truth: sp.csr_matrix) -> Thresholds:
    """Fit all thresholds.

    Parameters
    ----------
    probabilities : CSR of shape (N, L)
        Probabilities of the best labels of documents that the model was not trained on.
    truth : CSR of shape (N, L)
        Nonzero at the true labels of these documents.
    """
    order = np.argsort(-probabilities.data, kind="stable")
    values = probabilities.data[order].astype(np.float64)
    expected, counts = np.cumsum(values), np.arange(1, values.size + 1)
    total = max(float(truth.nnz), expected[-1])
    # The last of equal probabilities: a threshold takes all or none of them.
    last = np.flatnonzero(np.append(np.diff(values) < 0, True))
    points = last[np.unique(np.linspace(0, last.size - 1, POINTS).astype(np.int64))][::-1]
    micro = last[np.argmax(2 * expected[last] / (counts[last] + total))]
    macro = best_macro_threshold(probabilities, truth)
    labels_per_document = np.diff(truth.indptr)
    most = int(np.quantile(labels_per_document, MOST_DOCUMENTS, method="higher"))
    return Thresholds(
        thresholds=values[points],
        precisions=np.maximum.accumulate(expected[points] / counts[points]),
        shares=np.minimum.accumulate(expected[points] / total),
        of_f1=np.array([values[micro], macro]),
        by_label=label_thresholds(probabilities, truth, macro),
        maximum=np.array([max(1, most)]),
    )


def best_macro_threshold(probabilities: sp.csr_matrix, truth: sp.csr_matrix) -> float:
    """The threshold with the best mean F1 over the labels."""
    labels, values = probabilities.indices, probabilities.data.astype(np.float64)
    size = probabilities.shape[1]
    support = np.bincount(truth.indices, minlength=size)
    tried = np.unique(np.quantile(values, 1 - np.geomspace(1 / max(values.size, 2), 1, TRIED)))
    scores = []
    for threshold in tried:
        chosen = values >= threshold
        sums = np.bincount(labels[chosen], values[chosen], minlength=size)
        counts = np.bincount(labels[chosen], minlength=size)
        scores.append((2 * sums / np.maximum(counts + np.maximum(support, sums), 1)).sum())
    return float(tried[int(np.argmax(scores))])


def label_thresholds(
    probabilities: sp.csr_matrix, truth: sp.csr_matrix, otherwise: float
) -> np.ndarray:
    """The threshold with the best F1 of each label (float32), or `otherwise` where there is too little.

    It is half of the F1 that is then reached (Lipton et al. 2014), which varies less than the place of
    the maximum.
    """
    labels, values = probabilities.indices, probabilities.data.astype(np.float64)
    order = np.lexsort((-values, labels))
    labels, values = labels[order], values[order]
    support = np.bincount(truth.indices, minlength=probabilities.shape[1])
    distinct, starts, sizes = np.unique(labels, return_index=True, return_counts=True)
    running = np.cumsum(values)
    sums = running - np.repeat(running[starts] - values[starts], sizes)
    counts = np.arange(labels.size) - np.repeat(starts, sizes) + 1
    totals = np.add.reduceat(values, starts)
    all_true = np.repeat(np.maximum(support[distinct], totals), sizes)
    best = np.maximum.reduceat(2 * sums / (counts + all_true), starts)
    own = (sizes >= ENOUGH) & (totals >= ENOUGH_TRUE)
    thresholds = np.full(probabilities.shape[1], otherwise, np.float32)
    thresholds[distinct[own]] = best[own] / 2
    return thresholds
