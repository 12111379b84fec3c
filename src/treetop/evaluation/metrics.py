"""Ranking metrics on sparse matrices, overall and by label frequency. Usable on their own.

Every metric is registered once, here: `evaluate`, `treetop.scorer`, ``treetop evaluate`` and the model
card show what `METRICS` lists. To add one, write a function of a `Context` and `register` it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from treetop.errors import TreetopError
from treetop.labels.alignment import align_with_scores
from treetop.ranking.combining import ranked_labels

# (A, B) of Jain et al. 2016 as the field uses them
PROPENSITIES = {"wikipedia": (0.5, 0.4), "amazon": (0.6, 2.6), "default": (0.55, 1.5)}
BUCKETS = ((0, 0), (1, 1), (2, 4), (5, 9), (10, 49), (50, 499), (500, None))


@dataclass(frozen=True, eq=False)
class Context:
    """What a metric at k is computed from: N documents, L' labels, the k best of each document.

    Parameters
    ----------
    Y : CSR matrix of shape (N, L')
        True labels as 1. Labels that the scores have no column for come last.
    scores : CSR matrix of shape (N, L)
        Scores of the labels that may be predicted.
    best : int64 array of shape (N, k)
        Label numbers, best first, -1 where a document has fewer than k scores. Ties go to the lower
        label number.
    hits : bool array of shape (N, k)
        Whether the label at each rank is true.
    positives : int array of shape (N,)
        Number of true labels per document.
    counts : int array of shape (L',)
        Training documents per label.
    inverse : float64 array of shape (L',)
        Inverse propensity of each label.
    """

    Y: sp.csr_matrix
    scores: sp.csr_matrix
    best: np.ndarray
    hits: np.ndarray
    positives: np.ndarray
    counts: np.ndarray
    inverse: np.ndarray

    @property
    def k(self) -> int:
        """Number of ranks."""
        return int(self.best.shape[1])

    def at(self, k: int) -> Context:
        """The same for the first `k` ranks."""
        return replace(self, best=self.best[:, :k], hits=self.hits[:, :k])

    @cached_property
    def gains(self) -> np.ndarray:
        """Inverse propensity of the label at each rank, float64, 0 where it is not true."""
        return np.where(self.hits, self.inverse[np.maximum(self.best, 0)], 0.0)

    @cached_property
    def ideal_gains(self) -> np.ndarray:
        """`gains` of the best possible ranking."""
        Y = self.Y
        weighted = sp.csr_matrix((self.inverse[Y.indices], Y.indices, Y.indptr), shape=Y.shape)
        best = ranked_labels(weighted, self.k)
        return np.where(best >= 0, self.inverse[np.maximum(best, 0)], 0.0)

    @cached_property
    def f1(self) -> dict[str, float]:
        """Micro and macro F1 of the first k labels as the predicted set."""
        given = self.best >= 0
        rows = np.nonzero(given)[0]
        cells = (np.ones(rows.size, np.float32), (rows, self.best[given]))
        return f1(self.Y, sp.csr_matrix(cells, shape=self.Y.shape))


Function = Callable[[Context], float]


@dataclass(frozen=True)
class Metric:
    """A metric and how it is shown.

    Parameters
    ----------
    name : str
        What stands before ``@k`` in results and in `treetop.scorer`.
    function : callable
        Computes the metric from a `Context`.
    heading : str
        Heading of its row in printed tables.
    percent : bool
        Whether it is a share of 1, which is printed in per cent.
    greater_is_better : bool
        If false, `treetop.scorer` negates it.
    every_k : bool
        If false, `evaluate` computes it at the largest k only.
    compared_at : tuple of int
        Values of k at which comparisons of several models show it.
    """

    name: str
    function: Function
    heading: str
    percent: bool
    greater_is_better: bool
    every_k: bool
    compared_at: tuple[int, ...]


METRICS: dict[str, Metric] = {}


def register(
    name: str,
    *,
    heading: str = "",
    percent: bool = True,
    greater_is_better: bool = True,
    every_k: bool = True,
    compared_at: tuple[int, ...] = (),
) -> Callable[[Function], Function]:
    """Decorator that adds a function of a `Context` to `METRICS`; arguments as for `Metric`."""
    if not name or "@" in name or ">=" in name or name in METRICS:
        raise TreetopError(f"metric name {name!r}: it must be new, not empty, and without @ and >=")

    def add(function: Function) -> Function:
        METRICS[name] = Metric(
            name, function, heading or name, percent, greater_is_better, every_k, compared_at
        )
        return function

    return add


@register("P", compared_at=(1, 3, 5))
def precision(context: Context) -> float:
    """P@k: share of the first k that are true."""
    return float(context.hits.sum(axis=1).mean() / context.k)


@register("R")
def recall(context: Context) -> float:
    """R@k: share of a document's labels among the first k; documents without labels left out."""
    has = context.positives > 0
    return _mean(context.hits[has].sum(axis=1) / context.positives[has])


@register("RP", compared_at=(5,))
def r_precision(context: Context) -> float:
    """RP@k: hits among the first k, over min(k, number of labels)."""
    has = context.positives > 0
    return _mean(context.hits[has].sum(axis=1) / np.minimum(context.k, context.positives[has]))


@register("nDCG", compared_at=(5,))
def ndcg(context: Context) -> float:
    """nDCG@k with discount 1/log2(rank + 1)."""
    has = context.positives > 0
    discount = discounts(context.k)
    gained = (context.hits[has] * discount).sum(axis=1)
    possible = np.cumsum(discount)[np.minimum(context.k, context.positives[has]) - 1]
    return _mean(gained / possible)


@register("PSP", compared_at=(5,))
def propensity_scored_precision(context: Context) -> float:
    """PSP@k: as a ratio to the best possible ranking, as the field reports it."""
    return _ratio(context.gains.sum(), context.ideal_gains.sum())


@register("PSnDCG")
def propensity_scored_ndcg(context: Context) -> float:
    """PSnDCG@k: as a ratio to the best possible ranking, as the field reports it."""
    discount = discounts(context.k)
    # nDCG divides each document's sum by that of its own number of labels, as does the ideal one.
    scale = np.cumsum(discount)[np.clip(context.positives, 1, context.k) - 1]
    return _ratio(
        ((context.gains * discount).sum(axis=1) / scale).sum(),
        ((context.ideal_gains * discount).sum(axis=1) / scale).sum(),
    )


@register("micro_f1")
def micro_f1(context: Context) -> float:
    """F1 over all pairs of document and label, of the first k as the predicted set."""
    return context.f1["micro_f1"]


@register("macro_f1", compared_at=(5,))
def macro_f1(context: Context) -> float:
    """Mean over labels of their F1, of the first k as the predicted set."""
    return context.f1["macro_f1"]


@register("coverage", every_k=False)
def coverage(context: Context) -> float:
    """Share of the labels that occur in the test set that were found at least once."""
    return _ratio(np.unique(context.best[context.hits]).size, np.unique(context.Y.indices).size)


def evaluate(
    y_true: Any,
    scores: Any,
    k: Sequence[int] = (1, 3, 5),
    *,
    classes: Iterable[Any] | None = None,
    columns: Iterable[Any] | None = None,
    train_counts: np.ndarray | None = None,
    train_documents: int | None = None,
    propensity: str | tuple[float, float] = "default",
    threshold: float | None = None,
) -> dict[str, Any]:
    """Every metric, as shares of 1: ``{"P@1": …, …, "by_frequency": {"1": {...}, …}}``.

    Labels that the scores have no column for count as missed. Names are compared as strings.

    Parameters
    ----------
    y_true : lists of label names, or matrix of shape (N, number of columns)
        Lists need `classes`. A matrix without `columns` must be as wide as the scores and have its
        columns in the same order.
    scores : matrix of shape (N, L)
        Scores such as ``model.predict_scores(X)``.
    k : sequence of int
        Numbers of ranks to compute the metrics at.
    classes : names, optional
        Names of the L columns of the scores: ``model.classes_``.
    columns : names, optional
        Names of the columns of `y_true`, such as ``MultiLabelBinarizer.classes_``. With them and
        `classes`, columns are matched by name, and `y_true` may have any width.
    train_counts : array of shape (L,), optional
        Training documents per label, for PSP and the frequency buckets. By default, labels are counted
        in `y_true`.
    train_documents : int, optional
        Number of training documents, together with `train_counts`.
    propensity : str or (A, B)
        Propensity model of Jain et al. 2016: ``"default"``, ``"wikipedia"``, ``"amazon"`` or constants.
    threshold : float, optional
        Adds micro and macro F1 of all labels that score at least this much.

    Returns
    -------
    dict
        Metrics by name, the numbers of documents and labels, and ``by_frequency``: recall, precision
        and F1 at the largest k for labels of each training frequency.
    """
    whole = ranking_context(
        y_true,
        scores,
        max(k),
        classes=classes,
        columns=columns,
        train_counts=train_counts,
        train_documents=train_documents,
        propensity=propensity,
    )
    result: dict[str, Any] = {"documents": int(whole.Y.shape[0]), "labels": int(whole.Y.shape[1])}
    result["documents_without_labels"] = int((whole.positives == 0).sum())
    for at in k:
        context = whole.at(at)
        for metric in METRICS.values():
            if metric.every_k:
                result[f"{metric.name}@{at}"] = float(metric.function(context))
    for metric in METRICS.values():
        if not metric.every_k:
            result[f"{metric.name}@{whole.k}"] = float(metric.function(whole))
    if threshold is not None:
        above = predicted_above(whole.scores, threshold, whole.Y.shape[1])
        result.update({f"{name}>={threshold:g}": value for name, value in f1(whole.Y, above).items()})
    result["by_frequency"] = by_frequency(whole)
    return result


def ranking_context(
    y_true: Any,
    scores: Any,
    k: int,
    *,
    classes: Iterable[Any] | None = None,
    columns: Iterable[Any] | None = None,
    train_counts: np.ndarray | None = None,
    train_documents: int | None = None,
    propensity: str | tuple[float, float] = "default",
) -> Context:
    """What metrics at `k` are computed from. Parameters as for `evaluate`."""
    A, B = propensity_constants(propensity)
    scores = sp.csr_matrix(scores)
    if scores.nnz and np.isnan(scores.data).any():
        raise TreetopError("scores contain NaN")
    Y = align_with_scores(y_true, scores.shape[1], classes, columns)
    Y.data = np.ones_like(Y.data)
    if Y.shape[0] != scores.shape[0]:
        raise TreetopError(f"{Y.shape[0]} documents have labels, {scores.shape[0]} have scores")
    counts, documents = frequencies(Y), Y.shape[0]
    if train_counts is not None:
        if len(train_counts) != scores.shape[1]:
            raise TreetopError(
                f"train_counts has {len(train_counts)} labels, but the scores have "
                f"{scores.shape[1]} columns"
            )
        counts = np.zeros(Y.shape[1], np.int64)
        counts[: len(train_counts)] = train_counts
        documents = train_documents or documents
    best = ranked_labels(scores, k)
    return Context(
        Y=Y,
        scores=scores,
        best=best,
        hits=hits_of(Y, best),
        positives=np.diff(Y.indptr),
        counts=counts,
        inverse=inverse_propensity(counts, documents, A, B),
    )


def hits_of(Y: sp.csr_matrix, best: np.ndarray) -> np.ndarray:
    """N x k booleans: whether the label at each rank is true."""
    width = Y.shape[1]
    rows = np.repeat(np.arange(Y.shape[0]), np.diff(Y.indptr))
    true = np.sort(rows * width + Y.indices)
    asked = np.arange(best.shape[0])[:, None] * width + best
    place = np.minimum(np.searchsorted(true, asked), max(true.size - 1, 0))
    if not true.size:
        return np.zeros(best.shape, bool)
    hits: np.ndarray = (best >= 0) & (true[place] == asked)
    return hits


def propensity_constants(propensity: str | tuple[float, float]) -> tuple[float, float]:
    """A and B of a preset, or those given; an unknown preset is an error."""
    if not isinstance(propensity, str):
        return propensity
    if propensity not in PROPENSITIES:
        known = ", ".join(PROPENSITIES)
        raise TreetopError(f"unknown propensity preset {propensity!r}: choose one of {known}")
    return PROPENSITIES[propensity]


def inverse_propensity(counts: np.ndarray, documents: int, A: float, B: float) -> np.ndarray:
    """1/p_l = 1 + C (N_l + B)^-A with C = (ln N - 1)(B + 1)^A."""
    C = (np.log(documents) - 1.0) * (B + 1.0) ** A
    inverse: np.ndarray = 1.0 + C * (counts + B) ** -A
    return inverse


def discounts(k: int) -> np.ndarray:
    """1/log2(rank + 1) of the ranks 1 to k."""
    weights: np.ndarray = 1.0 / np.log2(np.arange(2, k + 2))
    return weights


def f1(Y: sp.csr_matrix, predicted: sp.csr_matrix) -> dict[str, float]:
    """Micro and macro F1 of predicted label sets. Macro is over labels that occur or are predicted."""
    agreed = np.asarray(Y.multiply(predicted).sum(axis=0)).ravel()
    said = np.asarray(predicted.sum(axis=0)).ravel()
    true = np.asarray(Y.sum(axis=0)).ravel()
    seen = (said + true) > 0
    return {
        "micro_f1": _ratio(2 * agreed.sum(), said.sum() + true.sum()),
        "macro_f1": _mean(2 * agreed[seen] / (said + true)[seen]),
    }


def predicted_above(scores: sp.csr_matrix, threshold: float, width: int) -> sp.csr_matrix:
    """Labels that score at least `threshold`, as 1, in a matrix of `width` columns."""
    above = sp.csr_matrix(scores >= threshold) if scores.nnz else scores
    above = sp.csr_matrix(above.multiply(scores != 0), dtype=np.float32)
    return sp.csr_matrix((above.data, above.indices, above.indptr), shape=(above.shape[0], width))


def by_frequency(context: Context) -> dict[str, dict[str, float]]:
    """For labels of each training frequency: how many, recall, precision and F1 at the largest k."""
    Y, best, hits, counts = context.Y, context.best, context.hits, context.counts
    found: dict[str, dict[str, float]] = {}
    said = np.maximum(best, 0)
    for low, high in BUCKETS:
        inside = (counts >= low) & (counts <= (np.inf if high is None else high))
        occurring = int(inside[Y.indices].sum())
        if not occurring:
            continue
        agreed = int((hits & inside[said]).sum())
        predicted = int(((best >= 0) & inside[said]).sum())
        name = f"{low}+" if high is None else (str(low) if low == high else f"{low}-{high}")
        found[name] = {
            "labels": int(inside[np.unique(Y.indices)].sum()),
            "occurrences": occurring,
            "recall": _ratio(agreed, occurring),
            "precision": _ratio(agreed, predicted),
            "f1": _ratio(2 * agreed, occurring + predicted),
        }
    return found


def frequencies(Y: sp.csr_matrix) -> np.ndarray:
    """Documents of each label."""
    return np.bincount(Y.indices, minlength=Y.shape[1])


def figures(result: dict[str, Any]) -> dict[str, str]:
    """The metrics of a result of `evaluate` as they are printed: ``{"P@1": "53.10", …}``."""
    return {key: shown(key, result[key]) for key in result if "@" in key or ">=" in key}


def compared(result: dict[str, Any]) -> dict[str, str]:
    """The figures that comparisons of several models show."""
    keys = [f"{metric.name}@{k}" for metric in METRICS.values() for k in metric.compared_at]
    return {key: shown(key, result[key]) for key in keys if key in result}


def shown(key: str, value: float) -> str:
    """A metric's value as it is printed: in per cent, unless it is no share of 1."""
    metric = METRICS.get(key.partition("@")[0])
    return f"{100 * value:.2f}" if metric is None or metric.percent else f"{value:.2f}"


def _ratio(part: float, whole: float) -> float:
    return float(part / whole) if whole else 0.0


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if values.size else 0.0
