"""The model that is being served: loads it, and computes batches with it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from treetop.errors import TreetopError
from treetop.explain.explaining import Explainer
from treetop.features.given import with_features
from treetop.model.folder import read_model
from treetop.model.layout import read_config
from treetop.runtime import Runtime
from treetop.serve.batching import Piece
from treetop.serve.features import row_of, text_in, to_matrix
from treetop.serve.label_search import LabelSearch
from treetop.serve.requests import Document, SparseRow, TextWithRow


@dataclass(frozen=True)
class PredictQuery:
    """A request for the best labels of its texts."""

    k: int = 5
    threshold: float | None = None
    allow: tuple[str, ...] | None = None
    probability: float = 0.0  # minimum, of a model that is calibrated


@dataclass
class ExplainQuery:
    """A request to explain labels of a document; they are computed one by one."""

    document: Document
    words: int
    explainer: Explainer | None = None  # made for the first label


class Served:
    """A loaded model, and what is derived from it."""

    def __init__(self, folder: Path, runtime: Runtime) -> None:
        try:
            self.version = version_of(folder)
        except OSError as error:
            raise TreetopError(f"{folder}: holds no model to serve ({error.strerror})") from None
        self.model = read_model(folder, runtime=runtime)
        self.config = read_config(folder, verify=False)
        self.name = folder.resolve().name
        self.loaded = time.time()
        # Of the features that the model takes, alone or with texts; None if it takes none.
        self.columns = self.model.ready_columns

    @cached_property
    def search(self) -> LabelSearch:
        """The index for searching labels by name."""
        return LabelSearch(self.model.classes, self.model.label_counts)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Number of each label, by name."""
        return self.model.vocabulary.numbers

    def prepare(self) -> None:
        """Build now what would otherwise be built by the first request."""
        self.search, self.numbers  # noqa: B018 - cached

    def answer(self, pieces: list[Piece], runtime: Runtime) -> list[list[Any]]:
        """Per piece, label, score and probability per text, best first, or an explanation per label."""
        to_label = [piece for piece in pieces if isinstance(piece.query, PredictQuery)]
        labeled = iter(self.label(to_label, runtime)) if to_label else iter(())
        return [
            next(labeled) if isinstance(piece.query, PredictQuery) else self.explain(piece, runtime)
            for piece in pieces
        ]

    def label(self, pieces: list[Piece], runtime: Runtime) -> list[list[Any]]:
        """Label the texts of all pieces; their features are computed together."""
        texts = [text for piece in pieces for text in piece.texts]
        X = self.model.features(self.readable(texts), runtime)
        answers: list[list[Any]] = [[] for _ in pieces]
        for allow, chosen in group_by_allow(pieces).items():
            rows = np.concatenate([np.arange(first, last) for _, first, last in chosen])
            k = max(pieces[number].query.k for number, _, _ in chosen)
            selected = X if rows.size == len(texts) else self.model.select(X, rows)
            scores = self.model.scores_from(selected, k, runtime, allow=allow)
            model, row = self.model, 0
            probable = model.probabilities(selected, scores) if model.calibrated else None
            for number, first, last in chosen:
                query = pieces[number].query
                for _ in range(first, last):
                    answers[number].append(self.predictions(scores, probable, row, query))
                    row += 1
        return answers

    def readable(self, documents: Sequence[Document]) -> Any:
        """Texts, rows of features as a matrix, or both, as the model takes them."""
        if self.columns is None:
            return documents
        rows = to_matrix([row_of(document) for document in documents], self.columns)
        if not self.model.reads_texts:
            return rows
        return with_features([text_in(document) or "" for document in documents], rows)

    @property
    def warm_up_document(self) -> Document:
        """A document to try the model with."""
        if self.columns is None:
            return "warm up"
        row = SparseRow(indices=[0], values=[1.0])
        return TextWithRow("warm up", row) if self.model.reads_texts else row

    def predictions(
        self,
        scores: sp.csr_matrix,
        probabilities: sp.csr_matrix | None,
        row: int,
        query: PredictQuery,
    ) -> list[tuple[str, float, float | None]]:
        """The labels of a row that a request asked for: name, score, probability if calibrated."""
        first, last = int(scores.indptr[row]), int(scores.indptr[row + 1])
        last = min(last, first + query.k)
        labels, values = scores.indices[first:last].tolist(), scores.data[first:last].tolist()
        chances: list[float | None] = [None] * len(values)
        if probabilities is not None:
            chances = probabilities.data[first:last].tolist()
        # Scores are float32: one of 0.7 reaches the threshold 0.7.
        threshold = -np.inf if query.threshold is None else float(np.float32(query.threshold))
        least = float(np.float32(query.probability))
        classes = self.model.classes
        return [
            (str(classes[label]), value, chance)
            for label, value, chance in zip(labels, values, chances, strict=True)
            if value >= threshold and (chance is None or chance >= least)
        ]

    def explain(self, piece: Piece, runtime: Runtime) -> list[Any]:
        """Explanations as JSON objects, one per label."""
        query = piece.query
        if query.explainer is None:
            readable = self.readable([query.document])
            document = readable if self.columns is not None else query.document
            query.explainer = Explainer(self.model, document, runtime, words=query.words)
        return [with_names_as_strings(one.to_dict()) for one in query.explainer.explain(piece.texts)]


def with_names_as_strings(explanation: dict[str, Any]) -> dict[str, Any]:
    """An explanation with label names as strings, which they are in the whole API."""
    nodes = [node for path in explanation["paths"] for node in path["nodes"]]
    for record in (*nodes, *explanation["neighbours"]):
        record["labels"] = [str(name) for name in record["labels"]]
    return {**explanation, "label": str(explanation["label"])}


def group_by_allow(pieces: list[Piece]) -> dict[Any, list[tuple[int, int, int]]]:
    """Number, first row and end of the pieces with the same `allow`."""
    groups: dict[Any, list[tuple[int, int, int]]] = {}
    first = 0
    for number, piece in enumerate(pieces):
        last = first + len(piece.texts)
        groups.setdefault(piece.query.allow, []).append((number, first, last))
        first = last
    return groups


def version_of(folder: Path) -> tuple[int, int]:
    """Identifies the model that is in a folder now: inode and modification time of its config.json."""
    status = (folder / "config.json").stat()
    return status.st_ino, status.st_mtime_ns
