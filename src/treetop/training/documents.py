"""Training and validation documents, read and validated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from treetop.errors import TreetopError
from treetop.features.given import python_texts
from treetop.features.words.tokens import check_text
from treetop.labels.alignment import align
from treetop.settings.schema import TransformerSettings
from treetop.training.inputs import check_count, read_labels, read_weights
from treetop.training.run import Run, data_fingerprint


@dataclass(frozen=True)
class TrainingDocuments:
    """Documents to train on, and those held out for validation, if any."""

    texts: list[str]
    Y: sp.csr_matrix  # float32, (documents, labels)
    classes: np.ndarray  # label names
    weights: np.ndarray | None  # float32, by document; None: all 1
    held_texts: list[str]
    held_labels: sp.csr_matrix  # float32, (held-out documents, labels)

    @contextmanager
    def open_run(self, folder: str | Path | None, resume: bool, overwrite: bool) -> Iterator[Run]:
        """Open the folder in which finished stages of a training on these documents are kept."""
        if folder is None:
            yield Run()
            return
        fingerprint = data_fingerprint(
            [*self.texts, "", *self.held_texts, "", *map(str, self.classes)],
            self.Y,
            self.held_labels,
            self.weights,
        )
        with Run.opened(Path(folder), fingerprint, resume, overwrite) as run:
            yield run


def read_documents(
    settings: TransformerSettings,
    texts: Iterable[str],
    y: Any,
    names: Sequence[object] | None,
    weights: Any,
    validation: tuple[Any, Any] | None,
) -> TrainingDocuments:
    """Read documents, labels and weights, and hold out documents for validation.

    The held-out documents are `validation` (texts and labels) or a random fraction of all documents.
    Documents with a weight of 0 are dropped.
    """
    texts = checked_texts(texts)
    Y, classes = read_labels(y, names)
    check_count(len(texts), Y)
    counts = read_weights(weights, len(texts))
    if (rows := counted_rows(counts)) is not None:
        texts, Y, counts = selected(rows, texts, Y, counts)
    if validation is not None:
        held_texts = checked_texts(validation[0])
        held_labels = align(validation[1], classes, unseen=False, input_name="validation labels")
        check_count(len(held_texts), held_labels, "validation: ")
        if held_labels.nnz == 0:
            raise TreetopError("validation: no document has a label that the training data has")
        return TrainingDocuments(texts, Y, classes, counts, held_texts, held_labels)
    held = held_rows(len(texts), settings.validation, settings.seed)
    held_texts, held_labels, _ = selected(held, texts, Y, None)
    if held.size:
        texts, Y, counts = selected(np.setdiff1d(np.arange(len(texts)), held), texts, Y, counts)
    return TrainingDocuments(texts, Y, classes, counts, held_texts, held_labels)


def selected(
    rows: np.ndarray, texts: list[str], Y: sp.csr_matrix, weights: np.ndarray | None
) -> tuple[list[str], sp.csr_matrix, np.ndarray | None]:
    """Select rows of the documents, their labels and their weights."""
    return [texts[row] for row in rows], Y[rows], None if weights is None else weights[rows]


def counted_rows(weights: np.ndarray | None) -> np.ndarray | None:
    """Return the rows of the documents with a non-zero weight; None if these are all documents."""
    return None if weights is None or weights.all() else np.flatnonzero(weights)


def held_rows(documents: int, share: float, seed: int) -> np.ndarray:
    """Choose the documents to hold out, at random."""
    count = round(share * documents)
    if share and not 0 < count < documents:
        raise TreetopError(
            f"validation={share} of {documents} documents leaves none on one side: choose a fraction "
            "that leaves documents to train on and to validate on"
        )
    return np.sort(np.random.default_rng(seed).permutation(documents)[:count])


def checked_texts(texts: Iterable[str]) -> list[str]:
    """Return the texts as a list; a document that is not a string is an error."""
    documents = list(python_texts(texts))
    for number, text in enumerate(documents):
        check_text(text, number)
    return documents
