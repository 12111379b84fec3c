"""The section about confidence: how often a score or a probability is right."""

from __future__ import annotations

from collections.abc import Sequence

from treetop.evaluation.curves import Reliability
from treetop.report import charts, markup
from treetop.report.charts import Series
from treetop.report.subject import Subject

RANKS_OF_CONFIDENCE = 5


def confidence_section(subjects: Sequence[Subject]) -> str:
    """A reliability diagram per model, before and after calibration."""
    parts, rows = [], [["values", "expected calibration error, points"]]
    for subject in subjects:
        if not subject.is_evaluated:
            continue
        bins = {"scores": subject.raw_reliability(RANKS_OF_CONFIDENCE)}
        if subject.probabilities is not None:
            bins["probabilities"] = subject.calibrated_reliability(RANKS_OF_CONFIDENCE)
        named = f" of {subject.name}" if len(subjects) > 1 else ""
        rows += [[f"{name}{named}", f"{100 * one.error:.2f}"] for name, one in bins.items()]
        parts.append(diagram(subject.name, bins))
    if not parts:
        return ""
    note = (
        f"The first {RANKS_OF_CONFIDENCE} labels of each document, in bins of equal size. On the "
        "dotted line, labels with a score of 0.8 are right in 80% of the cases."
    )
    if any(subject.probabilities is None for subject in subjects if subject.is_evaluated):
        note += " Scores of a model that is not calibrated only rank labels."
    about = f"<div>{markup.table('calibration error', rows)}{markup.note(note)}</div>"
    return markup.columns([*parts, about])


def diagram(name: str, bins: dict[str, Reliability]) -> str:
    """A reliability diagram."""
    series = [Series(kind, one.predicted.tolist(), one.observed.tolist()) for kind, one in bins.items()]
    chart = charts.lines_chart(
        series,
        "score or probability, %",
        "right, %",
        f"Reliability of {name}",
        diagonal=True,
        dots=True,
    )
    return markup.figure(name, chart, [one.name for one in series])
