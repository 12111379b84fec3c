"""The whole report."""

from __future__ import annotations

from collections.abc import Sequence

from treetop.report import markup
from treetop.report.confidence import confidence_section
from treetop.report.findings import documents_section, labels_section
from treetop.report.learning import training_section, tree_section
from treetop.report.quality import (
    differences_section,
    groups_section,
    overview,
    results_section,
    thresholds_section,
)
from treetop.report.subject import Subject
from treetop.runtime.tables import readable_bytes


def html_report(subjects: Sequence[Subject], measured_on: str = "") -> str:
    """Write a report about one or several models as one HTML page.

    Parameters
    ----------
    subjects : sequence of Subject
        The models. Several ones are compared with the first.
    measured_on : str
        What the evaluated documents are.

    Returns
    -------
    str
        The page, which needs no other file and no script.
    """
    title = "Model report: " + ", ".join(subject.name for subject in subjects)
    sections = [
        ("Overview", overview_section(subjects)),
        ("Metrics", results_section(subjects)),
        ("Differences", differences_section(subjects)),
        ("Thresholds", thresholds_section(subjects)),
        ("Confidence", confidence_section(subjects)),
        ("Labels and lengths", groups_section(subjects)),
        ("Worst labels", labels_section(subjects)),
        ("Worst documents", documents_section(subjects)),
        ("Label tree", tree_section(subjects)),
        ("Training", training_section(subjects)),
    ]
    return markup.page(title, markup.paragraph(measured_on) if measured_on else "", sections)


def overview_section(subjects: Sequence[Subject]) -> str:
    """What each model is, and its most important figures."""
    parts = []
    for subject in subjects:
        if len(subjects) > 1:
            parts.append(markup.heading(subject.name))
        model = subject.model
        documents = f"{model.train_documents:,}" if model.train_documents else "unknown"
        facts = [
            *overview(subject),
            ("labels", f"{len(model.classes):,}", ""),
            ("trained on", documents, "documents" if model.train_documents else "imported"),
        ]
        if subject.size is not None:
            facts.append(("size", readable_bytes(subject.size), "on disk"))
        parts.append(markup.tiles(facts))
        members = subject.models()
        kinds = ", ".join(dict.fromkeys(one.kind for one in members))
        trees = sum(len(one.rankers) for one in members)
        kind = f"{model.kind} of {kinds}" if len(members) > 1 else kinds
        parts.append(markup.paragraph(f"{kind}, label trees: {trees}."))
    if not any(subject.result is not None for subject in subjects):
        parts.append(markup.note("No metrics: give data with labels, as in treetop report MODEL DATA."))
    return "".join(parts)
