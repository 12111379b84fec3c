"""Results label by label, and what is predicted instead of a label that is missed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from treetop.evaluation.context import Context, frequencies
from treetop.evaluation.details import check_k
from treetop.evaluation.sums import ratio
from treetop.ranking.combining import best_of
from treetop.runtime.tables import html_table, text_table

HEADING = ["label", "training", "support", "predicted", "P", "R", "F1", "predicted instead"]
CONFUSIONS = 3
ROWS_SHOWN = 20
# Fewest documents with a label for it to be listed among the worst.
LEAST_SUPPORT = 5


@dataclass(frozen=True)
class LabelResult:
    """The results of one label, with the first k labels of each document as the predicted set."""

    label: str
    train_documents: int
    support: int  # documents that have the label
    predicted: int  # documents that it is predicted for
    correct: int  # documents of both kinds
    confusions: tuple[tuple[str, int], ...]  # wrong labels where it is missed, and how often

    @property
    def precision(self) -> float:
        """Fraction of its predictions that are true."""
        return ratio(self.correct, self.predicted)

    @property
    def recall(self) -> float:
        """Fraction of its documents that it is predicted for."""
        return ratio(self.correct, self.support)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return ratio(2 * self.correct, self.predicted + self.support)

    def cells(self) -> list[str]:
        """The cells of its row in a table."""
        instead = ", ".join(f"{name} ({count:,})" for name, count in self.confusions)
        counts = [f"{count:,}" for count in (self.train_documents, self.support, self.predicted)]
        shares = [f"{100 * share:.1f}" for share in (self.precision, self.recall, self.f1)]
        return [self.label, *counts, *shares, instead]


class LabelResults(list[LabelResult]):
    """Results label by label, labels that occur most often first. Prints as a table."""

    def worst(self, count: int = 20, least: int = LEAST_SUPPORT) -> LabelResults:
        """The labels with the lowest F1 among those that at least `least` documents have."""
        frequent = [result for result in self if result.support >= least]
        ordered = sorted(frequent, key=lambda result: (result.f1, -result.support, result.label))
        return LabelResults(ordered[:count])

    def __repr__(self) -> str:
        text = text_table([HEADING, *(result.cells() for result in self[:ROWS_SHOWN])])
        hidden = len(self) - ROWS_SHOWN
        return text + (f"\n... {hidden:,} more labels" if hidden > 0 else "")

    def _repr_html_(self) -> str:
        return html_table([result.cells() for result in self[:ROWS_SHOWN]], HEADING)


def results_by_label(context: Context, k: int) -> LabelResults:
    """Compute the results of every label that occurs or is predicted among the first `k`."""
    at = context.at(check_k(k, context))
    support, predicted, correct = (frequencies(part) for part in (at.Y, at.predicted, at.correct))
    confused = confusions(at)
    listed = np.flatnonzero(support + predicted)
    results = [
        LabelResult(
            label=at.names[label],
            train_documents=int(at.counts[label]),
            support=int(support[label]),
            predicted=int(predicted[label]),
            correct=int(correct[label]),
            confusions=tuple(
                (at.names[other], int(count))
                for other, count in zip(*entries_of_row(confused, label), strict=True)
            ),
        )
        for label in listed[np.argsort(-support[listed], kind="stable")].tolist()
    ]
    return LabelResults(results)


def confusions(context: Context) -> sp.csr_matrix:
    """Count which wrong labels are predicted where a label is missed: CSR (L', L'), largest first.

    Only as many labels count as predicted as a document has: further ones are not predicted instead of
    a label, but in addition.
    """
    within = np.arange(context.k) < context.positives[:, None]
    wrong = context.marked((context.best >= 0) & ~context.hits & within)
    missed = sp.csr_matrix(context.Y - context.marked(context.hits & within))
    return best_of(sp.csr_matrix(missed.T @ wrong), CONFUSIONS)


def entries_of_row(matrix: sp.csr_matrix, row: int) -> tuple[list[int], list[float]]:
    """Columns and values of a row of a sparse matrix."""
    span = slice(int(matrix.indptr[row]), int(matrix.indptr[row + 1]))
    return matrix.indices[span].tolist(), matrix.data[span].tolist()
