"""The documents with the worst predictions, and results by the length of documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from treetop.errors import TreetopError
from treetop.evaluation import metrics
from treetop.evaluation.details import Details, check_k
from treetop.features.given import TextsWithFeatures
from treetop.features.hybrid import Features
from treetop.runtime.tables import text_table

# Groups of documents by their length, of equal size as far as possible.
GROUPS = 5
# From this many characters per word on, a script is taken for one without spaces.
CHARACTERS_PER_WORD = 20
MEASURES = ("P@1", "R@k", "nDCG@k", "doc_f1@k")


@dataclass(frozen=True)
class WorstDocument:
    """A document with bad predictions. `explanation` is that of the best label that is wrong."""

    document: int
    text: str
    labels: list[str]
    predicted: list[tuple[str, float]]
    ndcg: float
    explanation: Any = None

    @property
    def wrong(self) -> str | None:
        """The best label that is wrong."""
        return next((name for name, _ in self.predicted if name not in self.labels), None)

    def __str__(self) -> str:
        predicted = ", ".join(f"{name} ({score:.2f})" for name, score in self.predicted)
        lines = [f"document {self.document}, nDCG {100 * self.ndcg:.1f}: {self.text}"]
        lines += [f"  labels: {', '.join(self.labels)}", f"  predicted: {predicted}"]
        if words := because(self.explanation):
            lines.append(f"  {self.wrong} because of: {', '.join(words)}")
        return "\n".join(lines)


class WorstDocuments(list[WorstDocument]):
    """The documents with the worst predictions, worst first. Prints as text."""

    def __repr__(self) -> str:
        return "\n\n".join(map(str, self))


def because(explanation: Any, count: int = 8) -> list[str]:
    """The words that speak most for a label, largest contribution first."""
    if explanation is None:
        return []
    return [word.name for word in explanation.words if word.value > 0][:count]


def worst_documents(details: Details, count: int, k: int, explain: bool) -> WorstDocuments:
    """Find the documents with the lowest nDCG@k; of equal ones, the most confident errors first."""
    at = details.context.at(check_k(k, details.context))
    ndcg = ndcg_by_document(details, at.k)
    scores = best_scores(at.scores, at.best)
    labeled = np.flatnonzero(at.positives)
    order = labeled[np.lexsort((-scores[labeled, 0], ndcg[labeled]))][:count]
    worst = []
    for row in order.tolist():
        listed = at.best[row] >= 0
        predicted = zip(details.names(at.best[row][listed]), scores[row][listed].tolist(), strict=True)
        document = WorstDocument(
            row,
            details.shown_text(row),
            details.true_labels(row),
            list(predicted),
            float(ndcg[row]),
        )
        if explain and document.wrong is not None:
            reasons = details.explained(row, document.wrong)
            document = WorstDocument(**{**vars(document), "explanation": reasons})
        worst.append(document)
    return WorstDocuments(worst)


def ndcg_by_document(details: Details, k: int) -> np.ndarray:
    """nDCG@k of each document, float64 (N,); 0 for those without labels."""
    at = details.context.at(k)
    return np.asarray((at.hits * metrics.discounts(at.k)).sum(axis=1) / metrics.ideal(at))


def best_scores(scores: sp.csr_matrix, best: np.ndarray) -> np.ndarray:
    """The scores of the labels in `best`, float64 of shape (N, k); -inf where there is none."""
    rows = np.repeat(np.arange(best.shape[0]), (best >= 0).sum(axis=1))
    values = np.full(best.shape, -np.inf)
    if rows.size:
        values[best >= 0] = np.asarray(scores[rows, best[best >= 0]]).ravel()
    return values


class ByLength(dict[str, dict[str, float]]):
    """Results by the length of documents: metrics by group, such as ``"12-20 words"``."""

    def rows(self) -> list[list[str]]:
        """Return the groups as rows of a table."""
        names = list(next(iter(self.values()), {}))
        rows = [["length", *names]]
        for group, figures in self.items():
            shown = [f"{100 * figures[name]:.2f}" for name in names[1:]]
            rows.append([group, f"{figures['documents']:,}", *shown])
        return rows

    def __repr__(self) -> str:
        return text_table(self.rows()) if self else "{}"


def results_by_length(details: Details, k: int) -> ByLength:
    """Compute metrics of the shortest fifth of the documents, the next, … and the longest."""
    lengths, unit = document_sizes(details)
    context = details.context.at(check_k(k, details.context))
    edges = np.unique(np.quantile(lengths, np.linspace(0, 1, GROUPS + 1)[1:-1], method="lower"))
    group = np.searchsorted(edges, lengths, side="left")
    results = ByLength()
    for number in np.unique(group).tolist():
        rows = np.flatnonzero(group == number)
        shortest, longest = int(lengths[rows].min()), int(lengths[rows].max())
        span = f"{shortest:,}" if shortest == longest else f"{shortest:,}-{longest:,}"
        figures: dict[str, float] = {"documents": rows.size}
        part = context.rows(rows)
        for measure in MEASURES:
            key = measure.replace("k", str(context.k))
            metric, depth = metrics.metric_of(key)
            figures[key] = float(metric.function(part.at(depth)))
        results[f"{span} {unit}"] = figures
    return results


def document_sizes(details: Details) -> tuple[np.ndarray, str]:
    """The length of each document, int64 (N,), and its unit: words, characters or features."""
    texts = details.texts
    if texts is None:
        return features_per_row(details.documents), "features"
    words = np.fromiter((len(text.split()) for text in texts), np.int64, len(texts))
    characters = np.fromiter(map(len, texts), np.int64, len(texts))
    if characters.sum() > CHARACTERS_PER_WORD * words.sum():
        return characters, "characters"
    return words, "words"


def features_per_row(documents: Any) -> np.ndarray:
    """The number of features of each row of a matrix: int64 (N,)."""
    if isinstance(documents, TextsWithFeatures):
        documents = documents.X
    if isinstance(documents, Features):
        documents = documents.sparse
    if documents is None:
        raise TreetopError(
            "the result does not know the documents, which were a stream or only scores: call "
            "model.evaluate with a list of texts or a matrix"
        )
    if sp.issparse(documents):
        return np.asarray(np.diff(documents.indptr), np.int64)
    return np.asarray((np.asarray(documents) != 0).sum(axis=1), np.int64)
