"""Documents to learn from, checked, and those held back to choose weights on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from treetop.errors import TreetopError
from treetop.features.words.tokens import check_text
from treetop.labels.alignment import align
from treetop.settings.schema import TransformerSettings
from treetop.training.inputs import read_labels, read_weights
from treetop.training.run import Run, data_fingerprint


@dataclass(frozen=True)
class TrainingDocuments:
    """Documents to learn from, and those held back if any."""

    texts: list[str]
    Y: sp.csr_matrix
    classes: np.ndarray
    weights: np.ndarray | None
    held_texts: list[str]
    held_labels: sp.csr_matrix

    def open_run(self, folder: str | Path | None, resume: bool, overwrite: bool) -> Run:
        """A run that remembers finished stages of a training on these documents."""
        if folder is None:
            return Run()
        fingerprint = data_fingerprint(
            [*self.texts, "", *self.held_texts, "", *map(str, self.classes)],
            self.Y,
            self.held_labels,
            self.weights,
        )
        return Run(Path(folder), fingerprint, resume, overwrite)


def read_documents(
    settings: TransformerSettings,
    texts: Iterable[str],
    y: Any,
    names: Sequence[str] | None,
    weights: Any,
    validation: tuple[Any, Any] | None,
) -> TrainingDocuments:
    """Documents, labels, weights, and the documents held back: given, or a share of all."""
    texts = checked_texts(texts)
    Y, classes = read_labels(y, names)
    if len(texts) != Y.shape[0]:
        raise TreetopError(
            f"{len(texts)} documents but labels for {Y.shape[0]}: inconsistent numbers of samples"
        )
    counts = read_weights(weights, len(texts))
    if counts is not None and (rows := counted_rows(counts)) is not None:
        texts, Y, counts = [texts[row] for row in rows], Y[rows], counts[rows]
    if validation is not None:
        held_texts = checked_texts(validation[0])
        held = align(validation[1], classes, unseen=False, input_name="validation labels")
        if len(held_texts) != held.shape[0]:
            raise TreetopError(
                f"validation: {len(held_texts)} documents but labels for {held.shape[0]}"
            )
        if held.nnz == 0:
            raise TreetopError("validation: no document has a label that the training data has")
        return TrainingDocuments(texts, Y, classes, counts, held_texts, held)
    out = held_rows(len(texts), settings.validation, settings.seed)
    kept = np.setdiff1d(np.arange(len(texts)), out)
    if out.size == 0:
        return TrainingDocuments(texts, Y, classes, counts, [], Y[:0])
    return TrainingDocuments(
        [texts[row] for row in kept],
        Y[kept],
        classes,
        None if counts is None else counts[kept],
        [texts[row] for row in out],
        Y[out],
    )


def counted_rows(weights: np.ndarray | None) -> np.ndarray | None:
    """Rows of the documents whose weight is not 0; None if that is all of them."""
    return None if weights is None or weights.all() else np.flatnonzero(weights)


def held_rows(documents: int, share: float, seed: int) -> np.ndarray:
    """Documents to hold back, at random."""
    count = round(share * documents)
    if share and not 0 < count < documents:
        raise TreetopError(f"validation={share} of {documents} documents leaves none on one side")
    return np.sort(np.random.default_rng(seed).permutation(documents)[:count])


def checked_texts(texts: Iterable[str]) -> list[str]:
    """Texts as a list; anything else than a string is an error before any work is done."""
    made = list(texts)
    for number, text in enumerate(made):
        check_text(text, number)
    return made
