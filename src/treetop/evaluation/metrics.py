"""The registry of metrics, and the metrics themselves.

Every metric is registered once, here: `evaluate`, `treetop.scorer`, ``treetop evaluate`` and the
model card show the metrics that `METRICS` lists. To add one, `register` a function of a `Context`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from treetop.errors import TreetopError
from treetop.evaluation.context import Context, mean, ratio

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


@register("P", compared_at=(1, 3, 5))
def precision(context: Context) -> float:
    """P@k: fraction of the first k labels that are true."""
    return float(context.hits.sum(axis=1).mean() / context.k)


@register("R")
def recall(context: Context) -> float:
    """R@k: fraction of a document's labels among the first k; documents without labels are left out."""
    has = context.positives > 0
    return mean(context.hits[has].sum(axis=1) / context.positives[has])


@register("RP", compared_at=(5,))
def r_precision(context: Context) -> float:
    """RP@k: hits among the first k, divided by min(k, number of true labels)."""
    has = context.positives > 0
    return mean(context.hits[has].sum(axis=1) / np.minimum(context.k, context.positives[has]))


@register("nDCG", compared_at=(5,))
def ndcg(context: Context) -> float:
    """nDCG@k with discount 1/log2(rank + 1)."""
    has = context.positives > 0
    discount = discounts(context.k)
    gained = (context.hits[has] * discount).sum(axis=1)
    possible = np.cumsum(discount)[np.minimum(context.k, context.positives[has]) - 1]
    return mean(gained / possible)


@register("PSP", compared_at=(5,))
def propensity_scored_precision(context: Context) -> float:
    """PSP@k, divided by that of the best possible ranking, as is usual in the literature."""
    return ratio(context.gains.sum(), context.ideal_gains.sum())


@register("PSP_raw", on_request=True)
def raw_propensity_scored_precision(context: Context) -> float:
    """PSP@k as its formula says, not divided by that of the best ranking: it may be above 1."""
    return float(context.gains.sum() / (context.gains.shape[0] * context.k))


@register("PSnDCG")
def propensity_scored_ndcg(context: Context) -> float:
    """PSnDCG@k, divided by that of the best possible ranking, as is usual in the literature."""
    discount = discounts(context.k)
    # nDCG divides each document's sum by that of its own number of labels, as does the ideal one.
    scale = np.cumsum(discount)[np.clip(context.positives, 1, context.k) - 1]
    return ratio(
        ((context.gains * discount).sum(axis=1) / scale).sum(),
        ((context.ideal_gains * discount).sum(axis=1) / scale).sum(),
    )


@register("micro_f1")
def micro_f1(context: Context) -> float:
    """F1 over all pairs of document and label, with the first k as the predicted set."""
    return context.f1["micro_f1"]


@register("macro_f1", compared_at=(5,))
def macro_f1(context: Context) -> float:
    """Mean F1 over labels, with the first k as the predicted set."""
    return context.f1["macro_f1"]


@register("coverage", every_k=False)
def coverage(context: Context) -> float:
    """Fraction of the labels in the test set that are predicted correctly at least once."""
    return ratio(np.unique(context.best[context.hits]).size, np.unique(context.Y.indices).size)


def computed_metrics(also: Iterable[str]) -> list[Metric]:
    """The metrics that are always computed, and those that are asked for in addition."""
    asked = [also] if isinstance(also, str) else list(also)
    optional = [name for name, metric in METRICS.items() if metric.on_request]
    for name in asked:
        if name not in METRICS:
            raise TreetopError(f"unknown metric {name!r}: also takes {', '.join(optional)}")
    return [metric for metric in METRICS.values() if not metric.on_request or metric.name in asked]


def discounts(k: int) -> np.ndarray:
    """Compute 1/log2(rank + 1) for ranks 1 to k: float64 array of shape (k,)."""
    weights: np.ndarray = 1.0 / np.log2(np.arange(2, k + 2))
    return weights
