"""Sections about the quality of predictions: metrics, differences, thresholds, groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from treetop.evaluation.comparing import comparison_of
from treetop.evaluation.curves import Curve, precision_recall
from treetop.evaluation.details import Details
from treetop.evaluation.result import Evaluation
from treetop.report import charts, markup
from treetop.report.charts import Measured, Series
from treetop.report.subject import Subject

PROMISED = (0.5, 0.8, 0.9, 0.95)
OVERALL = ("P@1", "P@5", "nDCG@5", "doc_f1@5")


def results_section(subjects: Sequence[Subject]) -> str:
    """The main metrics with intervals, and all metrics as a table per model."""
    evaluated = [subject for subject in subjects if subject.is_evaluated]
    parts = []
    if evaluated:
        parts.append(intervals_part(evaluated))
    for subject in subjects:
        if subject.result is None:
            continue
        about = subject.result.title()
        where = subject.result.get("measured_on")
        body = markup.paragraph(f"{where} {about}" if where else about)
        body += markup.table(f"metrics of {subject.name}", subject.result.rows())
        parts.append(markup.folded(f"All metrics of {subject.name}", body))
    return "".join(parts)


def intervals_part(subjects: Sequence[Subject]) -> str:
    """A chart and a table of the main metrics with intervals."""
    names = [subject.name for subject in subjects]
    rows: dict[str, list[Measured]] = {}
    cells: dict[str, list[str]] = {}
    for subject in subjects:
        result = result_of(subject)
        for key, interval in result.intervals().items():
            rows.setdefault(key, []).append(Measured(result[key], *interval))
            low, high = (f"{100 * value:.2f}" for value in interval)
            cells.setdefault(key, [key]).extend([f"{100 * result[key]:.2f}", f"{low} – {high}"])
    heading = ["metric", *(cell for name in names for cell in (name, "95% interval"))]
    chart = charts.estimates_chart(rows, names, "Main metrics with 95% intervals, in percent")
    caption = "The intervals say how much the figures would vary with other documents of the same kind."
    return markup.columns(
        [
            markup.figure("Main metrics", chart, names, caption),
            markup.table("main metrics", [heading, *cells.values()]),
        ]
    )


def overview(subject: Subject) -> list[tuple[str, str, str]]:
    """The most important metrics as short facts."""
    if subject.result is None:
        return []
    keys = [key for key in OVERALL if key in subject.result]
    if not subject.is_evaluated:
        return [(key, f"{100 * subject.result[key]:.1f}%", "") for key in keys]
    intervals = subject.result.intervals(keys)
    return [
        (
            key,
            f"{100 * subject.result[key]:.1f}%",
            f"{100 * intervals[key].low:.1f} – {100 * intervals[key].high:.1f}",
        )
        for key in keys
    ]


def differences_section(subjects: Sequence[Subject]) -> str:
    """How other models differ from the first, on the same documents."""
    evaluated = [subject for subject in subjects if subject.is_evaluated]
    parts = []
    for other in evaluated[1:]:
        first = evaluated[0]
        results = (result_of(first), result_of(other))
        comparison = comparison_of(results, (first.name, other.name), examples=3)
        body = markup.paragraph(f"A: {first.name}. B: {other.name}. Both on the same documents.")
        body += markup.table(f"{other.name} compared with {first.name}", comparison.rows())
        for side in ("a", "b"):
            gains = comparison[f"only_{side}"]
            body += markup.paragraph(
                f"Only {side.upper()} finds {gains['labels']:,} true labels in {gains['documents']:,} "
                f"documents among its first {comparison['k']}."
            )
            rows = [
                [example["text"] or f"document {example['document']}", *map(", ".join, lists)]
                for example in gains["examples"]
                for lists in [(example["found"], example["instead"])]
            ]
            heading = ["document", f"only {side.upper()}", "the other predicts"]
            if rows:
                body += markup.table(f"examples for {side.upper()}", [heading, *rows], numbers=False)
        parts.append(body)
    note = "p: how often a difference like this occurs by chance, by the paired bootstrap."
    return "".join(parts) + markup.note(note) if parts else ""


def thresholds_section(subjects: Sequence[Subject]) -> str:
    """Precision and recall over thresholds of the score."""
    evaluated = [subject for subject in subjects if subject.is_evaluated]
    if not evaluated:
        return ""
    names = [subject.name for subject in evaluated]
    curves = [precision_recall(details_of(subject).context) for subject in evaluated]
    series = [
        Series(name, curve.recall.tolist(), curve.precision.tolist())
        for name, curve in zip(names, curves, strict=True)
    ]
    chart = charts.lines_chart(series, "recall, %", "precision, %", "Precision over recall")
    named = [f"{name}: threshold" if len(names) > 1 else "threshold" for name in names]
    heading = ["to reach", *(cell for name in named for cell in (name, "recall, %"))]
    rows = [heading]
    for promised in PROMISED:
        cells = [cell for curve in curves for cell in reached(curve, promised)]
        rows.append([f"{100 * promised:g}% precision", *cells])
    best = [int(curve.f1.argmax()) if curve.f1.size else 0 for curve in curves]
    rows.append(
        [
            "the best micro-F1",
            *(cell for curve, at in zip(curves, best, strict=True) for cell in best_cells(curve, at)),
        ]
    )
    note = (
        "All labels of a document that score at least the threshold are assigned. Thresholds chosen on "
        "these documents are a little too good on them: choose on other documents than you report on."
    )
    return markup.columns(
        [
            markup.figure("Precision and recall", chart, names),
            f"<div>{markup.table('thresholds', rows)}{markup.note(note)}</div>",
        ]
    )


def reached(curve: Curve, promised: float) -> list[str]:
    """The lowest threshold with this precision, and its recall."""
    enough = np.flatnonzero(curve.precision >= promised)
    if not enough.size:
        return ["not reached", ""]
    at = int(enough[-1])
    return [f"{curve.thresholds[at]:.3f}", f"{100 * curve.recall[at]:.1f}"]


def best_cells(curve: Curve, at: int) -> list[str]:
    """The threshold of the best micro-F1, and the value."""
    if not curve.f1.size:
        return ["no predictions", ""]
    return [
        f"{curve.thresholds[at]:.3f}",
        f"{100 * curve.recall[at]:.1f} (micro-F1 {100 * curve.f1[at]:.1f})",
    ]


def details_of(subject: Subject) -> Details:
    """The predictions of a subject that is evaluated."""
    details = result_of(subject).details
    assert details is not None
    return details


def result_of(subject: Subject) -> Evaluation:
    """The result of a subject that has one."""
    assert subject.result is not None
    return subject.result


def groups_section(subjects: Sequence[Subject]) -> str:
    """Results by label frequency and by the length of documents."""
    evaluated = [subject for subject in subjects if subject.is_evaluated]
    if not evaluated:
        return ""
    names = [subject.name for subject in evaluated]
    results = [result_of(subject) for subject in evaluated]
    deepest = max(results[0]["k"])
    frequencies = [
        {bucket: row["recall"] for bucket, row in result["by_frequency"].items()} for result in results
    ]
    parts = [
        markup.figure(
            f"Recall among the first {deepest}, by label frequency",
            charts.groups_chart(
                values_by_group(frequencies),
                names,
                "training documents per label",
                "recall, %",
                "Recall by the number of training documents per label",
            ),
            names,
            "Labels without training documents cannot be predicted.",
        )
    ]
    if all(details_of(subject).documents is not None for subject in evaluated):
        lengths = [result.by_length() for result in results]
        ndcg = [{group: list(row.values())[3] for group, row in one.items()} for one in lengths]
        unit = next(iter(lengths[0]), " words").rsplit(" ", 1)[1]
        short = [{group.rsplit(" ", 1)[0]: value for group, value in one.items()} for one in ndcg]
        parts.append(
            markup.figure(
                f"nDCG@{min(5, deepest)} by length",
                charts.groups_chart(
                    values_by_group(short),
                    names,
                    f"{unit} per document",
                    "nDCG, %",
                    "nDCG by document length",
                ),
                names,
                "The shortest fifth of the documents, the next, and so on.",
            )
        )
    tables = "".join(
        markup.folded(
            f"By frequency, {subject.name}", markup.table("by frequency", result.frequency_rows())
        )
        for subject, result in zip(evaluated, results, strict=True)
    )
    return markup.columns(parts) + tables


def values_by_group(groups: Sequence[Mapping[str, float]]) -> dict[str, list[float]]:
    """The values of several models by group; 0 where a model has none."""
    every = dict.fromkeys(group for one in groups for group in one)
    return {group: [one.get(group, 0.0) for one in groups] for group in every}
