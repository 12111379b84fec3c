"""Evaluation of scores, or of a fitted model, with every registered metric."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypedDict

import numpy as np

from treetop.errors import TreetopError
from treetop.evaluation import metrics
from treetop.evaluation.context import Context, predicted_above, ranking_context
from treetop.evaluation.details import Details
from treetop.evaluation.result import Evaluation
from treetop.evaluation.sums import f1, ratio

# Bounds of the label frequencies that results are broken down by; None is unbounded.
BUCKETS = ((0, 0), (1, 1), (2, 4), (5, 9), (10, 49), (50, 499), (500, None))


class FittedLabels(Protocol):
    """A fitted estimator, as far as metrics are concerned."""

    @property
    def classes_(self) -> np.ndarray: ...  # noqa: D102
    @property
    def train_counts_(self) -> np.ndarray: ...  # noqa: D102
    @property
    def train_documents_(self) -> int: ...  # noqa: D102


class KnownLabels(TypedDict, total=False):
    """Arguments of `evaluate` that a fitted model determines."""

    classes: np.ndarray
    train_counts: np.ndarray
    train_documents: int


def known_labels(model: FittedLabels) -> KnownLabels:
    """Collect the label names of a model and, unless it was imported, its training frequencies.

    Pass them to `evaluate` together with scores of the model.
    """
    if not model.train_documents_:  # an imported model, whose training data is unknown
        return {"classes": model.classes_}
    return {
        "classes": model.classes_,
        "train_counts": model.train_counts_,
        "train_documents": model.train_documents_,
    }


def evaluate(
    y_true: object,
    scores: object,
    k: int | Sequence[int] = (1, 3, 5),
    *,
    classes: Iterable[object] | None = None,
    columns: Iterable[object] | None = None,
    train_counts: np.ndarray | None = None,
    train_documents: int | None = None,
    propensity: str | tuple[float, float] = "default",
    threshold: float | None = None,
    also: Iterable[str] = (),
) -> Evaluation:
    """Compute every registered metric of a matrix of scores.

    Labels that the scores have no column for count as missed. Names are compared as strings.

    Parameters
    ----------
    y_true : list of lists of label names, or matrix of shape (N, number of columns)
        True labels. Lists need `classes`. A matrix without `columns` must be as wide as the scores and
        have its columns in the same order.
    scores : matrix of shape (N, L)
        Scores such as ``model.predict_scores(X)``.
    k : int or sequence of int, default=(1, 3, 5)
        Numbers of ranks to compute the metrics at.
    classes : iterable of names, optional
        Names of the L columns of the scores: ``model.classes_``.
    columns : iterable of names, optional
        Names of the columns of `y_true`, such as ``MultiLabelBinarizer.classes_``. With them and
        `classes`, columns are matched by name, and `y_true` may have any width.
    train_counts : array of shape (L,), optional
        Training documents per label, for PSP and the frequency buckets. By default, labels are counted
        in `y_true`.
    train_documents : int, optional
        Number of training documents, together with `train_counts`.
    propensity : str or (float, float), default="default"
        Propensity model of Jain et al. 2016: ``"default"``, ``"wikipedia"``, ``"amazon"``, a data set
        of the literature such as ``"amazon-670k"``, or the constants A and B.
    threshold : float, optional
        Adds micro and macro F1 of all labels that score at least this much.
    also : iterable of str, default=()
        Metrics that are computed on request only: ``"PSP_raw"`` is PSP without division by that of the
        best possible ranking, as in the formula of the papers.

    Returns
    -------
    Evaluation
        A dict that prints as a table: metrics by name as fractions (``{"P@1": 0.75, …}``), the numbers
        of documents and labels, the values of ``k``, the constants of ``propensity`` (``{"A": …, "B":
        …}``), and ``by_frequency``: recall, precision and F1 at the largest k for
        labels of each training frequency.

    Examples
    --------
    >>> import treetop
    >>> scores = [[0.9, 0.1, 0.3], [0.2, 0.8, 0.6]]
    >>> y_true = [["red", "fruit"], ["green", "fruit"]]
    >>> result = treetop.metrics.evaluate(y_true, scores, k=2, classes=["red", "green", "fruit"])
    >>> result["P@2"], result["nDCG@2"]
    (1.0, 1.0)
    """
    ranks: tuple[int, ...] = (int(k),) if isinstance(k, int | np.integer) else tuple(k)
    if not ranks or min(ranks) < 1:
        raise TreetopError(f"k is {k}: give one or several numbers of at least 1")
    computed = metrics.computed_metrics(also)
    context = ranking_context(
        y_true,
        scores,
        max(ranks),
        classes=classes,
        columns=columns,
        train_counts=train_counts,
        train_documents=train_documents,
        propensity=propensity,
    )
    return evaluation_of(context, ranks, threshold, computed)


def evaluation_of(
    deepest: Context,
    ranks: Sequence[int],
    threshold: float | None,
    computed: Sequence[metrics.Metric],
) -> Evaluation:
    """Compute metrics: those of one rank at each of `ranks`, the others at the last."""
    result = Evaluation(
        documents=int(deepest.Y.shape[0]),
        labels=int(deepest.Y.shape[1]),
        documents_without_labels=int((deepest.positives == 0).sum()),
        k=list(ranks),
        propensity=dict(zip("AB", deepest.constants, strict=True)),
    )
    for rank in ranks:
        context = deepest.at(rank)
        for metric in computed:
            if metric.every_k:
                result[f"{metric.name}@{rank}"] = float(metric.function(context))
    for metric in computed:
        if not metric.every_k:
            result[f"{metric.name}@{deepest.k}"] = float(metric.function(deepest))
    if threshold is not None:
        above = predicted_above(deepest.scores, threshold, deepest.Y.shape[1])
        result.update({f"{name}>={threshold:g}": value for name, value in f1(deepest.Y, above).items()})
    result["by_frequency"] = by_frequency(deepest)
    result.details = Details(deepest)
    return result


def by_frequency(context: Context) -> dict[str, dict[str, float]]:
    """Compute recall, precision and F1 at the largest k for labels of each training frequency."""
    Y, best, hits, counts = context.Y, context.best, context.hits, context.counts
    results: dict[str, dict[str, float]] = {}
    ranked = np.maximum(best, 0)
    for low, high in BUCKETS:
        inside = (counts >= low) & (counts <= (np.inf if high is None else high))
        occurring = int(inside[Y.indices].sum())
        if not occurring:
            continue
        correct = int((hits & inside[ranked]).sum())
        predicted = int(((best >= 0) & inside[ranked]).sum())
        name = f"{low}+" if high is None else (str(low) if low == high else f"{low}-{high}")
        results[name] = {
            "labels": int(inside[np.unique(Y.indices)].sum()),
            "occurrences": occurring,
            "recall": ratio(correct, occurring),
            "precision": ratio(correct, predicted),
            "f1": ratio(2 * correct, occurring + predicted),
        }
    return results
