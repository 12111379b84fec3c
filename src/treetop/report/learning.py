"""Sections about training: settings, history of fine-tuning, time, memory, and the label tree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from treetop.explain.nodes import NamedNode, named_tree, words_of_labels
from treetop.model.model import Model
from treetop.report import charts, markup
from treetop.report.charts import Series
from treetop.report.subject import Subject
from treetop.runtime.progress import duration
from treetop.runtime.tables import readable_bytes

LABELS_OF_NODE = 3
VALIDATION = "validation P@1"


def training_section(subjects: Sequence[Subject]) -> str:
    """Losses, time and memory, and the settings of each model."""
    parts = []
    for subject in subjects:
        named = f", {subject.name}" if len(subjects) > 1 else ""
        body = markup.columns([*time_part(subject, named), *history_parts(subject, named)])
        for number, model in enumerate(subject.models()):
            member = f", member {number}" if len(subject.models()) > 1 else ""
            body += markup.folded(f"Settings{named}{member}", settings_table(model))
        parts.append(body)
    return "".join(parts)


def time_part(subject: Subject, named: str) -> list[str]:
    """A bar per stage of the training; nothing if it was not recorded."""
    record = subject.record
    if record is None:
        return []
    rows = {name: (seconds, duration(seconds)) for name, seconds in record.seconds.items()}
    total = duration(sum(record.seconds.values()))
    caption = f"{total} in all; at most {readable_bytes(record.peak_bytes)} of memory."
    chart = charts.durations_chart(rows, f"Duration of each stage of the training, {total} in all")
    return [markup.figure(f"Where the time went{named}", chart, caption=caption)]


def history_parts(subject: Subject, named: str) -> list[str]:
    """The losses and the validation metric of fine-tuning, a line per level of the tree."""
    parts = []
    for model in subject.models():
        for key, title in (("loss", "Loss"), (VALIDATION, "P@1 on validation documents")):
            series = history_series(model.history, key)
            if series:
                chart = charts.lines_chart(
                    series, "step", title, f"{title} while fine-tuning", percent=False
                )
                heading = f"{title} while fine-tuning{named}"
                parts.append(markup.figure(heading, chart, [one.name for one in series]))
    return parts


def history_series(history: Iterable[dict[str, Any]], key: str) -> list[Series]:
    """A value over the steps of each level, as far as it was recorded."""
    levels: dict[str, list[tuple[float, float]]] = {}
    for entry in history:
        if all(isinstance(entry.get(name), int | float) for name in ("level", "step", key)):
            levels.setdefault(f"level {entry['level']:g}", []).append((entry["step"], entry[key]))
    return [Series(name, *map(list, zip(*points))) for name, points in levels.items()]


def settings_table(model: Model) -> str:
    """All settings; those that were left open say what was decided."""
    facts = model.describe()
    rows = [["setting", "value", "given as"]]
    for name, value in facts["settings"].items():
        asked = str(facts["asked"][name]) if name in facts["asked"] else ""
        rows.append([name, str(value), asked])
    return markup.table("settings", rows, numbers=False)


def tree_section(subjects: Sequence[Subject]) -> str:
    """The first label tree of each model, its nodes named by words and labels."""
    parts = []
    for subject in subjects:
        model = next(iter(subject.models()), None)
        if model is None:
            continue
        ranker = model.rankers[0]
        if len(subjects) > 1:
            parts.append(markup.heading(subject.name))
        if ranker.tree.depth == 1:
            parts.append(flat_part(model))
            continue
        shown = len(model.rankers)
        parts.append(
            markup.paragraph(
                f"Tree 1 of {shown}, {ranker.tree}: each node with its number of labels, the most "
                "frequent of them, and the words that speak most for it."
            )
        )
        root = named_tree(model, ranker)
        parts += [node_part(child) for child in root.children] or [leaf_labels(root)]
    return "".join(parts)


def flat_part(model: Model) -> str:
    """The most frequent labels of a one-versus-all model with their words."""
    count = len(model.classes)
    named = words_of_labels(model, model.rankers[0])
    rows = [[str(label), f"{documents:,}", ", ".join(words)] for label, documents, words in named]
    about = f"One-versus-all: no tree above the {count:,} labels. The {len(rows)} most frequent labels:"
    heading = ["label", "training documents", "words that speak most for it"]
    return markup.paragraph(about) + markup.table(
        "labels and their words", [heading, *rows], ends_in_text=True
    )


def node_part(node: NamedNode) -> str:
    """A node and those below it, or its labels."""
    names = ", ".join(f"<bdi>{escape(str(name))}</bdi>" for name, _ in node.labels[:LABELS_OF_NODE])
    words = ""
    if node.words:
        words = f' <bdi class="words">{escape(", ".join(node.words))}</bdi>'
    summary = f'<summary>{names} <span class="count">{node.size:,} labels</span>{words}</summary>'
    inner = "".join(node_part(child) for child in node.children) or leaf_labels(node)
    return f'<details class="tree">{summary}{inner}</details>'


def leaf_labels(node: NamedNode) -> str:
    """The labels below a node, most frequent first, with their training documents."""
    listed = markup.label_list((f"{name} ({count:,})", "") for name, count in node.labels)
    hidden = node.size - len(node.labels)
    return listed + (markup.note(f"and {hidden:,} more") if hidden else "")
