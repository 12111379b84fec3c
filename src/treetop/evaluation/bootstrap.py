"""The bootstrap over documents: how much a metric would vary with other documents of the same kind.

Documents are drawn again with replacement. All labels of a document stay together, since they are not
independent of each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from treetop.errors import TreetopError
from treetop.evaluation.context import Context
from treetop.evaluation.metrics import metric_of

SAMPLES = 1000
CONFIDENCE = 0.95
# Numbers in memory at a time: counts of documents, or of labels, in several samples.
CELLS = 1 << 21


class Interval(NamedTuple):
    """The values between which a metric lies with the confidence that was asked for."""

    low: float
    high: float


def check_bootstrap(samples: int, confidence: float) -> None:
    """Raise unless an interval can be computed from so many samples."""
    if not 0 < confidence < 1:
        raise TreetopError(f"confidence is {confidence!r}: it must lie between 0 and 1, such as 0.95")
    if samples < 100:
        raise TreetopError(f"samples is {samples!r}: it must be at least 100, better 1000")


def resampled_metrics(
    context: Context, keys: Sequence[str], samples: int, seed: int
) -> dict[str, np.ndarray]:
    """Compute metrics, by names such as ``"P@5"``, of samples of the documents: float64 (samples,).

    Contexts of the same number of documents get the same samples.
    """
    asked = {key: metric_of(key) for key in keys}
    at = {k: context.at(k) for _, k in asked.values()}
    sums = {key: metric.sums(at[k]) for key, (metric, k) in asked.items() if metric.sums}
    values: dict[str, list[np.ndarray]] = {key: [] for key in keys}
    for drawn in samples_of(len(context.hits), samples, seed, context.Y.shape[1]):
        weights = occurrences(drawn)
        for key, (metric, k) in asked.items():
            if key in sums:
                values[key].append(sums[key].resampled(weights))
            else:  # a metric that a user has registered
                values[key].append(np.array([metric.function(at[k].rows(rows)) for rows in drawn]))
    return {key: np.concatenate(parts) for key, parts in values.items()}


def samples_of(documents: int, samples: int, seed: int, labels: int) -> Iterator[np.ndarray]:
    """Draw the documents of each sample: int64 arrays of shape (some samples, N)."""
    rng = np.random.default_rng(seed)
    at_once = max(1, CELLS // max(documents, labels))
    for start in range(0, samples, at_once):
        yield rng.integers(0, documents, (min(at_once, samples - start), documents))


def occurrences(drawn: np.ndarray) -> np.ndarray:
    """How often each document occurs in each of some samples: float64 of shape (N, S)."""
    samples, documents = drawn.shape
    cells = drawn * samples + np.arange(samples)[:, None]
    counts = np.bincount(cells.ravel(), minlength=drawn.size)
    return counts.reshape(documents, samples).astype(np.float64)


def centered(drawn: np.ndarray, estimate: float) -> np.ndarray:
    """Samples moved so that their mean is the metric of all documents.

    Many rare labels are missing in a sample, so the mean of macro-F1 or coverage in samples is not that
    of the documents they are drawn from. The spread is what the bootstrap is good for.
    """
    return np.asarray(drawn - drawn.mean() + estimate)


def intervals_of(
    drawn: Mapping[str, np.ndarray], estimates: Mapping[str, float], confidence: float
) -> dict[str, Interval]:
    """The central interval of each metric's samples, around the metric itself."""
    tails = ((1 - confidence) / 2, (1 + confidence) / 2)
    return {
        key: Interval(*np.quantile(centered(values, estimates[key]), tails).tolist())
        for key, values in drawn.items()
    }


def within_bounds(interval: Interval, drawn: np.ndarray) -> Interval:
    """Keep the interval of a fraction between 0 and 1, if its samples are."""
    low, high = interval
    return Interval(
        max(low, 0.0) if drawn.min() >= 0 else low, min(high, 1.0) if drawn.max() <= 1 else high
    )


def p_value(differences: np.ndarray) -> float:
    """Two-sided p of differences (S,) between two models: twice the smaller share beyond 0."""
    beyond = min((differences <= 0).sum(), (differences >= 0).sum())
    return float(min(1.0, 2 * (1 + beyond) / (1 + differences.size)))
