"""Comparison of two models on the same documents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from treetop.errors import TreetopError
from treetop.evaluation.bootstrap import (
    CONFIDENCE,
    SAMPLES,
    centered,
    check_bootstrap,
    intervals_of,
    p_value,
    resampled_metrics,
)
from treetop.evaluation.gained import gained_hits, gains_summary, label_differences
from treetop.evaluation.result import RANKS, Evaluation, main_metrics, shown
from treetop.runtime.tables import html_table, text_table

EXAMPLES = 5
HEADING_OF_COMPARISON = ["metric", "A", "B", "B - A", "low", "high", "p"]


class Evaluable(Protocol):
    """An estimator that can be evaluated."""

    def evaluate(
        self, X: object, y: object, k: int | Sequence[int] = ..., **options: object
    ) -> Evaluation:
        """Compute every registered metric."""


class Comparison(dict[str, Any]):
    """How two models differ on the same documents: a dict that prints as tables.

    ``metrics`` holds for each main metric ``a``, ``b``, their ``difference`` b - a, its interval
    ``low`` to ``high``, and ``p``. ``only_a`` and ``only_b`` say what one model finds among its first
    labels and the other does not: in how many ``documents``, how many ``labels``, and ``examples``.
    ``by_label`` lists the labels that differ most.
    """

    def rows(self) -> list[list[str]]:
        """Return the metrics as rows of a table."""
        rows = [HEADING_OF_COMPARISON]
        for key, row in self["metrics"].items():
            signed = [signed_shown(key, row[name]) for name in ("difference", "low", "high")]
            rows.append([key, shown(key, row["a"]), shown(key, row["b"]), *signed, f"{row['p']:.3f}"])
        return rows

    def title(self) -> str:
        """Return the lines above the table."""
        return (
            f"{self['documents']:,} documents, metrics in percent; {100 * self['confidence']:g}% "
            f"intervals and p of the difference, by the bootstrap over documents\n"
            f"A: {self['a']}\nB: {self['b']}"
        )

    def __repr__(self) -> str:
        parts = [self.title(), text_table(self.rows())]
        for side, other in (("a", "b"), ("b", "a")):
            parts.append(self.gains_text(side, other))
        labels = [[row["label"], str(row["a"]), str(row["b"])] for row in self["by_label"]]
        if labels:
            heading = ["labels that differ most", "right in A", "right in B"]
            parts.append(text_table([heading, *labels]))
        return "\n\n".join(parts)

    def gains_text(self, side: str, other: str) -> str:
        """Return what one model gets right that the other does not, with examples."""
        gains, names = self[f"only_{side}"], (side.upper(), other.upper())
        lines = [
            f"only {names[0]} finds {gains['labels']:,} true labels in {gains['documents']:,} "
            f"documents among its first {self['k']}:"
        ]
        for example in gains["examples"]:
            lines.append(f"  document {example['document']}: {example['text'][:100]}".rstrip())
            lines.append(f"    only {names[0]}: {', '.join(example['found'])}")
            lines.append(f"    {names[1]} instead: {', '.join(example['instead']) or 'nothing'}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return html_table(self.rows()[1:], HEADING_OF_COMPARISON)


def compare(
    a: Evaluable,
    b: Evaluable,
    X: Any,
    y: Any,
    *,
    columns: Iterable[object] | None = None,
    propensity: str | tuple[float, float] = "default",
    confidence: float = CONFIDENCE,
    samples: int = SAMPLES,
    seed: int = 0,
    examples: int = EXAMPLES,
    names: tuple[str, str] | None = None,
    **options: Any,
) -> Comparison:
    """Compare two models on the same documents, by the paired bootstrap.

    Both models find the same documents easy or hard, so their difference is less uncertain than the
    figures of each.

    Parameters
    ----------
    a, b : estimators
        Fitted models.
    X, y, columns, propensity, **options
        Documents and labels, as for `evaluate`.
    confidence : float, default=0.95
        Probability that an interval covers the difference on all documents of this kind.
    samples : int, default=1000
        How often the documents are drawn again.
    seed : int, default=0
        Seed of the draws.
    examples : int, default=5
        Number of documents shown that only one of the models gets right.
    names : (str, str), optional
        What to call the models.

    Returns
    -------
    Comparison
        A dict that prints as tables.

    Examples
    --------
    >>> import treetop
    >>> texts, labels = ["red apple", "green grass"] * 5, [["red"], ["green"]] * 5
    >>> a = treetop.XRLinear().fit(texts, labels)
    >>> b = treetop.XRLinear(ngrams="char:2-3").fit(texts, labels)
    >>> comparison = treetop.compare(a, b, texts, labels)
    >>> comparison["metrics"]["P@1"]["difference"]
    0.0
    """
    results = [
        model.evaluate(X, y, columns=columns, propensity=propensity, **options) for model in (a, b)
    ]
    names = (repr(a), repr(b)) if names is None else names
    return comparison_of(
        (results[0], results[1]),
        names,
        confidence=confidence,
        samples=samples,
        seed=seed,
        examples=examples,
    )


def comparison_of(
    results: tuple[Evaluation, Evaluation],
    names: tuple[str, str],
    *,
    confidence: float = CONFIDENCE,
    samples: int = SAMPLES,
    seed: int = 0,
    examples: int = EXAMPLES,
) -> Comparison:
    """Compare two results on the same documents."""
    check_bootstrap(samples, confidence)
    details = tuple(result._details() for result in results)
    a, b = (one.context for one in details)
    if len(a.hits) != len(b.hits) or not np.array_equal(a.positives, b.positives):
        raise TreetopError("the results are of different documents: evaluate both on the same ones")
    keys = [key for key in main_metrics(results[0]) if key in results[1]]
    drawn_a, drawn_b = (resampled_metrics(one, keys, samples, seed) for one in (a, b))
    drawn = {key: drawn_b[key] - drawn_a[key] for key in keys}
    differences = {key: results[1][key] - results[0][key] for key in keys}
    intervals = intervals_of(drawn, differences, confidence)
    metrics = {
        key: {
            "a": results[0][key],
            "b": results[1][key],
            "difference": differences[key],
            "low": intervals[key].low,
            "high": intervals[key].high,
            "p": p_value(centered(drawn[key], differences[key])),
        }
        for key in keys
    }
    k = min(RANKS, a.k, b.k)
    gains = gained_hits(a.at(k), b.at(k))
    return Comparison(
        documents=len(a.hits),
        a=names[0],
        b=names[1],
        k=k,
        confidence=confidence,
        samples=samples,
        seed=seed,
        metrics=metrics,
        only_a=gains_summary(details, gains, k, examples),
        only_b=gains_summary(details[::-1], gains.swapped(), k, examples),
        by_label=label_differences(gains, 2 * examples),
    )


def signed_shown(key: str, value: float) -> str:
    """A difference of a metric as it is printed, with its sign."""
    text = shown(key, value)
    return text if text.startswith("-") else f"+{text}"
