"""Sections about single labels and documents: where a model is wrong, and why."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from treetop.evaluation.per_document import WorstDocument, because
from treetop.evaluation.per_label import HEADING, LabelResults
from treetop.report import markup
from treetop.report.subject import Subject

LABELS = 20
DOCUMENTS = 10


def labels_section(subjects: Sequence[Subject]) -> str:
    """The worst and the most frequent labels of each model."""
    parts = []
    for subject in subjects:
        if subject.result is None or not subject.is_evaluated:
            continue
        results = subject.result.by_label()
        worst = results.worst(LABELS) or results.worst(LABELS, least=1)
        named = f" of {subject.name}" if len(subjects) > 1 else ""
        parts.append(markup.heading(f"Lowest F1{named}") + labels_table(worst))
        frequent = labels_table(LabelResults(results[:LABELS]))
        parts.append(markup.folded(f"Most frequent labels{named}", frequent))
    note = (
        "Labels that at least 5 of these documents have, if there are any. The first 5 labels of a "
        "document count as predicted; “predicted instead” are wrong labels where the label is missed."
    )
    return "".join(parts) + markup.note(note) if parts else ""


def labels_table(results: LabelResults) -> str:
    """Results of labels as a table."""
    rows = [HEADING, *(result.cells() for result in results)]
    return markup.table("results by label", rows, ends_in_text=True)


def documents_section(subjects: Sequence[Subject]) -> str:
    """The documents with the worst predictions of each model."""
    parts = []
    for subject in subjects:
        if subject.result is None or not subject.is_evaluated:
            continue
        worst = subject.result.worst_documents(DOCUMENTS)
        body = "".join(map(document_part, worst))
        if len(subjects) > 1:
            body = markup.folded(f"Worst documents of {subject.name}", body)
        parts.append(body)
    note = "Lowest nDCG@5; of equal ones, those come first where the model was most confident."
    return markup.note(note) + "".join(parts) if any(parts) else ""


def document_part(one: WorstDocument) -> str:
    """A document with its labels, the predicted ones, and why the best wrong one was predicted."""
    found = {name for name, _ in one.predicted}
    true = [(name, "right" if name in found else "") for name in one.labels]
    predicted = [
        (f"{name} {score:.2f}", "right" if name in one.labels else "wrong")
        for name, score in one.predicted
    ]
    rows = [("true labels", markup.label_list(true))]
    rows.append(("predicted", markup.label_list(predicted) if predicted else "nothing"))
    if words := because(one.explanation):
        wrong = f"<bdi>{escape(str(one.wrong))}</bdi>"
        rows.append((f"why {wrong}", f'<bdi class="words">{escape(", ".join(words))}</bdi>'))
    listed = "".join(f"<dt>{name}</dt><dd>{body}</dd>" for name, body in rows)
    text = one.text or f"document {one.document}"
    return f'<article class="document"><p dir="auto">{escape(text)}</p><dl>{listed}</dl></article>'
