"""The model that is served: opened, asked, exchanged for a new one."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from treetop.errors import TreetopError
from treetop.explain.explaining import explain
from treetop.model.folder import read_model
from treetop.model.layout import read_config
from treetop.runtime import Runtime
from treetop.serve.batching import Piece
from treetop.serve.labels import LabelSearch


@dataclass(frozen=True)
class Question:
    """What is asked about texts."""

    k: int = 5
    threshold: float | None = None
    allow: tuple[str, ...] | None = None
    served: Served | None = None  # the model that is asked: the one of the moment the request came


@dataclass(frozen=True)
class Reasons:
    """Labels whose reasons are asked for, for one text."""

    labels: tuple[str, ...]
    words: int
    served: Served | None = None


class Served:
    """An opened model, and what is derived from it."""

    def __init__(self, folder: Path, runtime: Runtime) -> None:
        self.mark = mark_of(folder)
        self.model = read_model(folder, runtime=runtime)
        self.config = read_config(folder, verify=False)
        self.name = folder.resolve().name
        self.opened = time.time()
        if not self.model.reads_texts:
            raise TreetopError(f"{folder}: learned from a feature matrix: only texts can be served")

    @cached_property
    def search(self) -> LabelSearch:
        """Labels by name."""
        return LabelSearch(self.model.classes, self.model.label_counts)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Number of each label."""
        return self.model.vocabulary.numbers

    def prepare(self) -> None:
        """Make what is made late, before the first request needs it."""
        self.search, self.numbers  # noqa: B018 - made now

    def answer(self, pieces: list[Piece], runtime: Runtime) -> list[list[Any]]:
        """For each piece, for each of its texts: (label, score) pairs, best first, or reasons."""
        asked = [piece for piece in pieces if isinstance(piece.options, Question)]
        labelled = iter(self.label(asked, runtime)) if asked else iter(())
        return [
            next(labelled) if isinstance(piece.options, Question) else self.reasons(piece, runtime)
            for piece in pieces
        ]

    def label(self, pieces: list[Piece], runtime: Runtime) -> list[list[Any]]:
        """Labels of all texts of all pieces; features are made of all together."""
        texts = [text for piece in pieces for text in piece.texts]
        X = self.model.features(texts, runtime)
        answers: list[list[Any]] = [[] for _ in pieces]
        for allow, chosen in by_allow_list(pieces).items():
            rows = np.concatenate([np.arange(first, last) for _, first, last in chosen])
            most = max(pieces[number].options.k for number, _, _ in chosen)
            some = X if rows.size == len(texts) else self.model.select(X, rows)
            scores = self.model.scores_from(some, most, runtime, allow=allow)
            at = 0
            for number, first, last in chosen:
                question = pieces[number].options
                for row in range(at, at + last - first):
                    answers[number].append(self.named(scores, row, question))
                at += last - first
        return answers

    def named(self, scores: sp.csr_matrix, row: int, question: Question) -> list[tuple[str, float]]:
        """A row of scores as names and numbers, as many as asked for."""
        first, last = int(scores.indptr[row]), int(scores.indptr[row + 1])
        last = min(last, first + question.k)
        names, values = scores.indices[first:last].tolist(), scores.data[first:last].tolist()
        least = -np.inf if question.threshold is None else question.threshold
        classes = self.model.classes
        return [(str(classes[n]), v) for n, v in zip(names, values, strict=True) if v >= least]

    def reasons(self, piece: Piece, runtime: Runtime) -> list[Any]:
        """Why each text gets these labels."""
        labels, words = list(piece.options.labels), piece.options.words
        return [
            [
                explanation.to_dict()
                for explanation in explain(self.model, text, labels, runtime, words=words)
            ]
            for text in piece.texts
        ]


def by_allow_list(pieces: list[Piece]) -> dict[Any, list[tuple[int, int, int]]]:
    """Pieces (number, first row, end) that are restricted to the same labels."""
    grouped: dict[Any, list[tuple[int, int, int]]] = {}
    first = 0
    for number, piece in enumerate(pieces):
        last = first + len(piece.texts)
        grouped.setdefault(piece.options.allow, []).append((number, first, last))
        first = last
    return grouped


def mark_of(folder: Path) -> tuple[int, int]:
    """What tells one model at a place from the next one."""
    facts = (folder / "config.json").stat()
    return facts.st_ino, facts.st_mtime_ns
