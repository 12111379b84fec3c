"""Training and validation documents, read and validated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from treetop.errors import TreetopError
from treetop.features.given import TextsWithFeatures, is_text, parts_of, with_features
from treetop.features.hybrid import canonical, sparse_alone
from treetop.features.words.tokens import check_text
from treetop.labels.alignment import align
from treetop.runtime.texts import StoredTexts, kept_texts
from treetop.settings.schema import TransformerSettings
from treetop.training.inputs import check_count, read_labels, read_weights
from treetop.training.run import Run, data_fingerprint


class HeldTexts(NamedTuple):
    """Held-out texts on which features are compared; none if a competition holds out its own."""

    texts: Sequence[str] = ()
    labels: sp.csr_matrix | None = None  # float32, (texts, labels)


@dataclass(frozen=True)
class TrainingDocuments:
    """Documents to train on, and those held out for validation, if any."""

    texts: Sequence[str]
    Y: sp.csr_matrix  # float32, (documents, labels)
    classes: np.ndarray  # label names
    weights: np.ndarray | None  # float32, by document; None: all 1
    held_texts: Sequence[str]
    held_labels: sp.csr_matrix  # float32, (held-out documents, labels)
    features: sp.csr_matrix | None = None  # precomputed, in place of TF-IDF features
    held_features: sp.csr_matrix | None = None  # and of the held-out texts

    @contextmanager
    def open_run(self, folder: str | Path | None, resume: bool, overwrite: bool) -> Iterator[Run]:
        """Open the folder in which finished stages of a training on these documents are kept."""
        if folder is None:
            yield Run()
            return
        fingerprint = data_fingerprint(
            chain(self.texts, [""], self.held_texts, [""], map(str, self.classes)),
            self.Y,
            self.held_labels,
            self.weights,
            *(() if self.features is None else (self.features, self.held_features)),
        )
        with Run.opened(Path(folder), fingerprint, resume, overwrite) as run:
            yield run


def read_documents(
    settings: TransformerSettings,
    documents: Any,
    y: Any,
    names: Sequence[object] | None,
    weights: Any,
    validation: tuple[Any, ...] | None,
) -> TrainingDocuments:
    """Read documents, labels and weights, and hold out documents for validation.

    `documents` are texts, or texts with precomputed features. The held-out documents are `validation`
    (texts, labels and perhaps features) or a random fraction of all documents. Documents with a weight
    of 0 are dropped.
    """
    texts, X = checked_documents(documents)
    Y, classes = read_labels(y, names)
    check_count(len(texts), Y)
    counts = read_weights(weights, len(texts))
    if (rows := counted_rows(counts)) is not None:
        texts, Y, counts = selected(rows, texts, Y, counts)
        X = rows_of(X, rows)
    if validation is not None:
        held_texts, held_labels, held_X = read_validation(validation, classes, X)
        return TrainingDocuments(texts, Y, classes, counts, held_texts, held_labels, X, held_X)
    held = held_rows(len(texts), settings.validation, settings.seed)
    held_texts, held_labels, _ = selected(held, texts, Y, None)
    held_X = rows_of(X, held)
    if held.size:
        kept = np.setdiff1d(np.arange(len(texts)), held)
        texts, Y, counts = selected(kept, texts, Y, counts)
        X = rows_of(X, kept)
    return TrainingDocuments(texts, Y, classes, counts, held_texts, held_labels, X, held_X)


def read_validation(
    validation: tuple[Any, ...], classes: np.ndarray, X: sp.csr_matrix | None
) -> tuple[Sequence[str], sp.csr_matrix, sp.csr_matrix | None]:
    """Texts, labels and precomputed features of validation documents; `X` are those of training."""
    if len(validation) not in (2, 3):
        raise TreetopError("validation: give (texts, labels), or (texts, labels, features)")
    given, y, *more = validation
    texts, held_X = checked_documents(with_features(given, *more) if more else given)
    Y = align(y, classes, unseen=False, input_name="validation labels")
    check_count(len(texts), Y, "validation: ")
    if Y.nnz == 0:
        raise TreetopError("validation: no document has a label that the training data has")
    if (X is None) != (held_X is None):
        lacking = "the validation documents" if held_X is None else "the training documents"
        raise TreetopError(
            f"validation: {lacking} have no precomputed features: give features for both, or for "
            "neither"
        )
    if X is not None and held_X is not None and X.shape[1] != held_X.shape[1]:
        raise TreetopError(
            f"validation: features has {held_X.shape[1]:,} columns, but those of training have "
            f"{X.shape[1]:,}"
        )
    return texts, Y, held_X


def validation_texts(
    validation: tuple[Any, ...] | None, documents: Any, classes: np.ndarray
) -> HeldTexts:
    """The held-out texts of `XRLinear.fit`, which only help to choose the features of texts."""
    if validation is None:
        return HeldTexts()
    if isinstance(documents, TextsWithFeatures) or not is_text(documents):
        raise TreetopError(
            "validation: XRLinear chooses the features of texts on it, but features were given: leave "
            "it out"
        )
    texts, Y, _ = read_validation(validation, classes, None)
    return HeldTexts(texts, Y)


def selected(
    rows: np.ndarray, texts: Sequence[str], Y: sp.csr_matrix, weights: np.ndarray | None
) -> tuple[Sequence[str], sp.csr_matrix, np.ndarray | None]:
    """Select rows of the documents, their labels and their weights."""
    own = kept_texts(texts[row] for row in rows)
    return own, Y[rows], None if weights is None else weights[rows]


def rows_of(X: sp.csr_matrix | None, rows: np.ndarray) -> sp.csr_matrix | None:
    """Select rows of precomputed features, if there are any."""
    return None if X is None else canonical(X[rows])


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


def checked_documents(documents: Any) -> tuple[Sequence[str], sp.csr_matrix | None]:
    """The texts, and their precomputed features; a text that is not a string is an error.

    Texts that are stored on disk stay there.
    """
    given, ready = parts_of(documents)
    texts = given if isinstance(given, StoredTexts) else list(given or ())
    for number, text in enumerate(texts):
        check_text(text, number)
    return texts, None if ready is None else sparse_alone(ready)
