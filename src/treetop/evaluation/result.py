"""Results of an evaluation: a dict that prints as a table, and its values as they are printed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from treetop.errors import TreetopError
from treetop.evaluation import metrics
from treetop.evaluation.bootstrap import (
    CONFIDENCE,
    SAMPLES,
    Interval,
    check_bootstrap,
    intervals_of,
    resampled_metrics,
    within_bounds,
)
from treetop.evaluation.details import Details, ExplainsLabels, kept_documents
from treetop.evaluation.per_document import (
    ByLength,
    WorstDocuments,
    results_by_length,
    worst_documents,
)
from treetop.evaluation.per_label import LabelResults, results_by_label
from treetop.runtime.tables import html_table, text_table

FREQUENCY_HEADING = ["training documents", "labels", "occurrences", "recall", "precision", "F1"]


INTERVAL_HEADING = ["metric", "value", "low", "high"]
# Ranks that results by label, document and length are computed at.
RANKS = 5


class Evaluation(dict[str, Any]):
    """Metrics by name, as returned by `evaluate`: a dict that prints as a table.

    Values are fractions, such as ``result["P@1"] == 0.75``; tables show percent. ``by_frequency``
    holds recall, precision and F1 at the largest k for labels of each training frequency.

    The methods compute more from the predictions, which the result keeps in `details`. A result that
    was copied, pickled or read from a file has its values only.

    Examples
    --------
    >>> import treetop
    >>> scores = [[0.9, 0.1, 0.3], [0.2, 0.8, 0.6]]
    >>> result = treetop.metrics.evaluate([["a"], ["b"]], scores, k=(1, 2), classes=["a", "b", "c"])
    >>> result["P@2"]
    0.5
    >>> print(result)  # doctest: +ELLIPSIS
    2 documents, 3 labels, metrics in percent at k = 1, 2; propensities with A = 0.55, B = 1.5
    <BLANKLINE>
                  @1      @2
    --------  ------  ------
    P         100.00   50.00
    R         100.00  100.00
    ...
    """

    details: Details | None = None

    def __reduce__(self) -> tuple[type[Evaluation], tuple[dict[str, Any]]]:
        return Evaluation, (dict(self),)

    def intervals(
        self,
        metrics: Sequence[str] | None = None,
        *,
        confidence: float = CONFIDENCE,
        samples: int = SAMPLES,
        seed: int = 0,
    ) -> Intervals:
        """Compute how much metrics would vary with other documents, by the bootstrap.

        Parameters
        ----------
        metrics : sequence of str, optional
            Names such as ``"P@5"``; by default those that comparisons of models show.
        confidence : float, default=0.95
            Probability that an interval covers the metric of all documents of this kind.
        samples : int, default=1000
            How often the documents are drawn again.
        seed : int, default=0
            Seed of the draws.

        Returns
        -------
        Intervals
            A dict of (low, high) by metric, as fractions, that prints as a table.
        """
        check_bootstrap(samples, confidence)
        keys = main_metrics(self) if metrics is None else list(metrics)
        for key in keys:
            if key not in self or "@" not in key:
                known = ", ".join(name for name in self if "@" in name)
                raise TreetopError(f"there is no metric {key!r} in this result: it has {known}")
        drawn = resampled_metrics(self._details().context, keys, samples, seed)
        values = {key: self[key] for key in keys}
        intervals = {
            key: within_bounds(interval, drawn[key])
            for key, interval in intervals_of(drawn, values, confidence).items()
        }
        return Intervals(intervals, values, confidence)

    def with_intervals(self) -> dict[str, Any]:
        """Return all values and, under ``intervals``, those of the main metrics, for a file."""
        return {**self, "intervals": {key: list(pair) for key, pair in self.intervals().items()}}

    def with_documents(self, documents: Any, model: ExplainsLabels) -> Evaluation:
        """Return the same result, which knows the documents and the model it was computed from."""
        result = Evaluation(self)
        details = self._details()
        result.details = replace(details, documents=kept_documents(documents), model=model)
        return result

    def by_label(self, k: int = RANKS) -> LabelResults:
        """Compute support, precision, recall and F1 of each label, and what is predicted instead.

        The first `k` labels of each document are its predicted set.
        """
        return results_by_label(self._details().context, k)

    def by_length(self, k: int = RANKS) -> ByLength:
        """Compute metrics by the length of documents: the shortest fifth, the next, … the longest."""
        return results_by_length(self._details(), k)

    def worst_documents(
        self, count: int = 10, k: int = RANKS, *, explain: bool = True
    ) -> WorstDocuments:
        """Find the documents with the lowest nDCG@k; of equal ones, the most confident errors first.

        With `explain`, each has the explanation of its best wrong label.
        """
        return worst_documents(self._details(), count, k, explain)

    def plot(self) -> Any:
        """Plot the main figures with matplotlib, and return the matplotlib Figure."""
        from treetop.evaluation.plots import draw  # on use: matplotlib takes time

        details = self._details()
        by_length = {} if details.documents is None else self.by_length()
        return draw(self, self.intervals(), details.context, by_length)

    def _details(self) -> Details:
        """The details, or an error if this result was not computed in this process."""
        if self.details is None:
            raise TreetopError(
                "this result has its values only, not the predictions: evaluate the model again"
            )
        return self.details

    def rows(self) -> list[list[str]]:
        """Return the metrics as rows of a table: a metric per row, a column per k."""
        printed = figures(self)
        depths = [key.partition("@")[2] for key in printed if key.startswith("P@")]
        rows = [["", *(f"@{depth}" for depth in depths)]]
        for metric in metrics.METRICS.values():
            cells = [printed.pop(f"{metric.name}@{depth}", "") for depth in depths]
            if any(cells):
                rows.append([metric.heading, *cells])
        blank = [""] * (len(depths) - 1)
        return rows + [[key, *blank, value] for key, value in printed.items()]

    def frequency_rows(self) -> list[list[str]]:
        """Return recall, precision and F1 by label frequency as rows of a table."""
        rows = [FREQUENCY_HEADING]
        for bucket, row in self["by_frequency"].items():
            cells = [f"{100 * row[name]:.2f}" for name in ("recall", "precision", "f1")]
            rows.append([bucket, f"{row['labels']:,}", f"{row['occurrences']:,}", *cells])
        return rows

    def title(self) -> str:
        """Return the line above the tables."""
        title = f"{self['documents']:,} documents, {self['labels']:,} labels, metrics in percent"
        if "propensity" not in self:  # saved by an earlier version
            return title
        constants = ", ".join(f"{name} = {value:g}" for name, value in self["propensity"].items())
        return f"{title} at k = {', '.join(map(str, self['k']))}; propensities with {constants}"

    def __repr__(self) -> str:
        if "by_frequency" not in self:
            return super().__repr__()
        tables = (
            f"{self.title()}\n\n{text_table(self.rows())}\n\n"
            f"by number of training documents per label:\n\n{text_table(self.frequency_rows())}"
        )
        return tables if self.details is None else f"{tables}\n\n{self.intervals()!r}"

    def _repr_html_(self) -> str:
        heading, *rows = self.rows()
        by_frequency = self.frequency_rows()
        intervals = "" if self.details is None else self.intervals()._repr_html_()
        return (
            f"<p>{self.title()}</p>{html_table(rows, heading)}{intervals}"
            f"<details><summary>by number of training documents per label</summary>"
            f"{html_table(by_frequency[1:], by_frequency[0])}</details>"
        )


class Intervals(dict[str, Interval]):
    """Intervals of metrics, (low, high) by name: a dict that prints as a table with the metrics."""

    def __init__(
        self, intervals: Mapping[str, Interval], values: Mapping[str, float], confidence: float
    ) -> None:
        super().__init__(intervals)
        self.metrics, self.confidence = dict(values), confidence

    def __reduce__(self) -> tuple[type[Intervals], tuple[Any, ...]]:
        return Intervals, (dict(self), self.metrics, self.confidence)

    def rows(self) -> list[list[str]]:
        """Return the metrics with their intervals as rows of a table."""
        return [
            [key, *(shown(key, value) for value in (self.metrics[key], *interval))]
            for key, interval in self.items()
        ]

    def __repr__(self) -> str:
        return (
            f"{100 * self.confidence:g}% intervals, by the bootstrap over documents:\n\n"
            f"{text_table([INTERVAL_HEADING, *self.rows()])}"
        )

    def _repr_html_(self) -> str:
        return html_table(self.rows(), INTERVAL_HEADING)


def main_metrics(result: Mapping[str, Any]) -> list[str]:
    """The names of the metrics that comparisons show; those at the largest k if there are none."""
    return list(compared(result)) or [key for key in result if key.endswith(f"@{max(result['k'])}")]


def figures(result: Mapping[str, Any]) -> dict[str, str]:
    """Format the metrics of a result of `evaluate`: ``{"P@1": "53.10", …}``."""
    return {key: shown(key, result[key]) for key in result if "@" in key or ">=" in key}


def interval_texts(result: Mapping[str, Any]) -> dict[str, str]:
    """Format the intervals that were saved with a result: ``{"P@1": "52.01 to 54.20", …}``."""
    return {
        key: f"{shown(key, low)} to {shown(key, high)}"
        for key, (low, high) in result.get("intervals", {}).items()
    }


def compared(result: Mapping[str, Any]) -> dict[str, str]:
    """Format the metrics that comparisons of several models show."""
    keys = [f"{metric.name}@{k}" for metric in metrics.METRICS.values() for k in metric.compared_at]
    return {key: shown(key, result[key]) for key in keys if key in result}


def shown(key: str, value: float) -> str:
    """Format the value of a metric: in percent if it is a fraction."""
    metric = metrics.METRICS.get(key.partition("@")[0])
    return f"{100 * value:.2f}" if metric is None or metric.percent else f"{value:.2f}"
