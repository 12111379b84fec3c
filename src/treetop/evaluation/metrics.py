"""The registry of metrics, and the metrics themselves.

Every metric is registered once, here: `evaluate`, `treetop.scorer`, ``treetop evaluate`` and the
model card show the metrics that `METRICS` lists. To add one, `register` a function of a `Context`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import wraps

import numpy as np

from treetop.errors import TreetopError
from treetop.evaluation.context import Context
from treetop.evaluation.sums import (
    DocumentRatio,
    LabelCounts,
    Sums,
    coverage_of,
    macro_f1_of,
    ratios,
)

MetricFunction = Callable[[Context], float]


@dataclass(frozen=True)
class Metric:
    """A metric and how it is shown.

    Parameters
    ----------
    name : str
        The part before ``@k`` in results and in `treetop.scorer`.
    function : callable
        Computes the metric from a `Context`.
    heading : str
        Heading of its row in printed tables.
    percent : bool
        Whether it is a fraction, which is printed in percent.
    greater_is_better : bool
        If false, `treetop.scorer` negates it.
    every_k : bool
        If false, `evaluate` computes it at the largest k only.
    compared_at : tuple of int
        Values of k at which comparisons of several models show it.
    on_request : bool
        If true, `evaluate` computes it only if it is named in ``also``.
    sums : callable, optional
        Computes the metric as a function of sums over documents, if it is one.

    Examples
    --------
    >>> METRICS["P"].heading, METRICS["P"].compared_at
    ('P', (1, 3, 5))
    """

    name: str
    function: MetricFunction
    heading: str
    percent: bool
    greater_is_better: bool
    every_k: bool
    compared_at: tuple[int, ...]
    on_request: bool = False
    sums: Callable[[Context], Sums] | None = None


METRICS: dict[str, Metric] = {}


def register(
    name: str,
    *,
    heading: str = "",
    percent: bool = True,
    greater_is_better: bool = True,
    every_k: bool = True,
    compared_at: tuple[int, ...] = (),
    on_request: bool = False,
) -> Callable[[MetricFunction], MetricFunction]:
    """Register a function of a `Context` as a metric; use it as a decorator.

    Parameters
    ----------
    name : str
        A new name, without ``@`` and ``>=``.
    heading : str, default: the name
        Heading of its row in printed tables.
    percent : bool, default=True
        Whether it is a fraction, which is printed in percent.
    greater_is_better : bool, default=True
        If false, `treetop.scorer` negates it.
    every_k : bool, default=True
        If false, `evaluate` computes it at the largest k only.
    compared_at : tuple of int, default=()
        Values of k at which comparisons of several models show it.
    on_request : bool, default=False
        If true, `evaluate` computes it only if it is named in ``also``.

    Returns
    -------
    callable
        The decorator.

    Examples
    --------
    >>> import treetop
    >>> @treetop.metrics.register("hit")
    ... def hit(context):
    ...     '''Fraction of documents with a true label among the first k.'''
    ...     return context.hits.any(axis=1).mean()
    >>> y_true, scores = [["red"], ["blue"]], [[0.9, 0.1], [0.8, 0.2]]
    >>> treetop.metrics.evaluate(y_true, scores, k=1, classes=["red", "blue"])["hit@1"]
    0.5
    """
    if not name or "@" in name or ">=" in name or name in METRICS:
        raise TreetopError(f"metric name {name!r}: it must be new, not empty, and without @ and >=")

    def add(function: MetricFunction) -> MetricFunction:
        METRICS[name] = Metric(
            name,
            function,
            heading or name,
            percent,
            greater_is_better,
            every_k,
            compared_at,
            on_request,
        )
        return function

    return add


def register_sums(
    name: str,
    *,
    every_k: bool = True,
    compared_at: tuple[int, ...] = (),
    on_request: bool = False,
) -> Callable[[Callable[[Context], Sums]], MetricFunction]:
    """Register a metric that is a function of sums over documents, whose intervals are quick."""
    add = register(name, every_k=every_k, compared_at=compared_at, on_request=on_request)

    def decorate(sums: Callable[[Context], Sums]) -> MetricFunction:
        @wraps(sums)
        def function(context: Context) -> float:
            return sums(context).value

        add(function)
        METRICS[name] = replace(METRICS[name], sums=sums)
        return function

    return decorate


@register_sums("P", compared_at=(1, 3, 5))
def precision(context: Context) -> Sums:
    """P@k: fraction of the first k labels that are true."""
    return DocumentRatio(context.hits.sum(axis=1), np.full(len(context.hits), context.k))


@register_sums("R")
def recall(context: Context) -> Sums:
    """R@k: fraction of a document's labels among the first k; documents without labels are left out."""
    return mean_over_labeled(context, context.hits.sum(axis=1), context.positives)


@register_sums("RP", compared_at=(5,))
def r_precision(context: Context) -> Sums:
    """RP@k: hits among the first k, divided by min(k, number of true labels)."""
    possible = np.minimum(context.k, context.positives)
    return mean_over_labeled(context, context.hits.sum(axis=1), possible)


@register_sums("nDCG", compared_at=(5,))
def ndcg(context: Context) -> Sums:
    """nDCG@k with discount 1/log2(rank + 1)."""
    return mean_over_labeled(context, (context.hits * discounts(context.k)).sum(axis=1), ideal(context))


@register_sums("PSP", compared_at=(5,))
def propensity_scored_precision(context: Context) -> Sums:
    """PSP@k, divided by that of the best possible ranking, as is usual in the literature."""
    return DocumentRatio(context.gains.sum(axis=1), context.ideal_gains.sum(axis=1))


@register_sums("PSP_raw", on_request=True)
def raw_propensity_scored_precision(context: Context) -> Sums:
    """PSP@k as its formula says, not divided by that of the best ranking: it may be above 1."""
    return DocumentRatio(context.gains.sum(axis=1), np.full(len(context.gains), context.k))


@register_sums("PSnDCG")
def propensity_scored_ndcg(context: Context) -> Sums:
    """PSnDCG@k, divided by that of the best possible ranking, as is usual in the literature."""
    # nDCG divides each document's sum by that of its own number of labels, as does the ideal one.
    scale = discounts(context.k) / ideal(context)[:, None]
    return DocumentRatio((context.gains * scale).sum(axis=1), (context.ideal_gains * scale).sum(axis=1))


@register_sums("micro_f1")
def micro_f1(context: Context) -> Sums:
    """F1 over all pairs of document and label, with the first k as the predicted set."""
    return DocumentRatio(2 * context.hits.sum(axis=1), context.listed + context.positives)


@register_sums("macro_f1", compared_at=(5,))
def macro_f1(context: Context) -> Sums:
    """Mean F1 over labels, with the first k as the predicted set."""
    return LabelCounts(context.correct, context.predicted, context.Y, macro_f1_of)


@register_sums("doc_f1", compared_at=(5,))
def document_f1(context: Context) -> Sums:
    """Mean F1 over documents, with the first k as the predicted set; 0 for those without labels.

    This is what libraries report, such as Annif as its F1@5: ``average="samples"`` of scikit-learn.
    """
    both = context.listed + context.positives
    return DocumentRatio(ratios(2 * context.hits.sum(axis=1), both), np.ones(both.size))


@register_sums("coverage", every_k=False)
def coverage(context: Context) -> Sums:
    """Fraction of the labels in the test set that are predicted correctly at least once."""
    return LabelCounts(context.correct, context.predicted, context.Y, coverage_of)


def mean_over_labeled(context: Context, parts: np.ndarray, totals: np.ndarray) -> DocumentRatio:
    """The mean of a ratio per document, over the documents that have labels."""
    has = context.positives > 0
    return DocumentRatio(np.where(has, ratios(parts, totals), 0.0), has.astype(np.int64))


def ideal(context: Context) -> np.ndarray:
    """The discounted hits of a perfect ranking of each document, or of one label if it has none."""
    best = np.cumsum(discounts(context.k))
    return np.asarray(best[np.clip(context.positives, 1, context.k) - 1])


def computed_metrics(also: Iterable[str]) -> list[Metric]:
    """The metrics that are always computed, and those that are asked for in addition."""
    asked = [also] if isinstance(also, str) else list(also)
    optional = [name for name, metric in METRICS.items() if metric.on_request]
    for name in asked:
        if name not in METRICS:
            raise TreetopError(f"unknown metric {name!r}: also takes {', '.join(optional)}")
    return [metric for metric in METRICS.values() if not metric.on_request or metric.name in asked]


def metric_of(key: str) -> tuple[Metric, int]:
    """The metric and the k of a name such as ``"P@5"``."""
    name, _, depth = key.partition("@")
    return METRICS[name], int(depth)


def discounts(k: int) -> np.ndarray:
    """Compute 1/log2(rank + 1) for ranks 1 to k: float64 array of shape (k,)."""
    weights: np.ndarray = 1.0 / np.log2(np.arange(2, k + 2))
    return weights
