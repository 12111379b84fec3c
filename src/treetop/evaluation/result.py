"""Results of an evaluation: a dict that prints as a table, and its values as they are printed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from treetop.evaluation import metrics
from treetop.runtime.tables import html_table, text_table

FREQUENCY_HEADING = ["training documents", "labels", "occurrences", "recall", "precision", "F1"]


class Evaluation(dict[str, Any]):
    """Metrics by name, as returned by `evaluate`: a dict that prints as a table.

    Values are fractions, such as ``result["P@1"] == 0.75``; tables show percent. ``by_frequency``
    holds recall, precision and F1 at the largest k for labels of each training frequency.

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
        return (
            f"{self.title()}\n\n{text_table(self.rows())}\n\n"
            f"by number of training documents per label:\n\n{text_table(self.frequency_rows())}"
        )

    def _repr_html_(self) -> str:
        heading, *rows = self.rows()
        by_frequency = self.frequency_rows()
        return (
            f"<p>{self.title()}</p>{html_table(rows, heading)}"
            f"<details><summary>by number of training documents per label</summary>"
            f"{html_table(by_frequency[1:], by_frequency[0])}</details>"
        )


def figures(result: Mapping[str, Any]) -> dict[str, str]:
    """Format the metrics of a result of `evaluate`: ``{"P@1": "53.10", …}``."""
    return {key: shown(key, result[key]) for key in result if "@" in key or ">=" in key}


def compared(result: Mapping[str, Any]) -> dict[str, str]:
    """Format the metrics that comparisons of several models show."""
    keys = [f"{metric.name}@{k}" for metric in metrics.METRICS.values() for k in metric.compared_at]
    return {key: shown(key, result[key]) for key in keys if key in result}


def shown(key: str, value: float) -> str:
    """Format the value of a metric: in percent if it is a fraction."""
    metric = metrics.METRICS.get(key.partition("@")[0])
    return f"{100 * value:.2f}" if metric is None or metric.percent else f"{value:.2f}"
