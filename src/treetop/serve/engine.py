"""The model that is served: opened, asked, exchanged for a new one."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from treetop.errors import TreetopError
from treetop.labels.alignment import vocabulary
from treetop.model.layout import read_config
from treetop.models import load_model
from treetop.serve.batching import Piece
from treetop.serve.labels import LabelSearch


@dataclass(frozen=True)
class Question:
    """What is asked about texts."""

    k: int = 5
    threshold: float | None = None
    allow: tuple[str, ...] | None = None
    served: Any = None  # the model that is asked: the one of the moment the request came


@dataclass(frozen=True)
class Reasons:
    """Labels whose reasons are asked for, for one text."""

    labels: tuple[str, ...]
    words: int
    served: Any = None


class Served:
    """An opened model, and what is derived from it."""

    def __init__(self, folder: Path, device: str | None = None) -> None:
        self.mark = mark_of(folder)
        self.model = load_model(folder)
        self.config = read_config(folder, verify=False)
        self.name = folder.resolve().name
        self.opened = time.time()
        for member in members(self.model):
            if member.tfidf_ is None:
                raise TreetopError(f"{folder}: learned from a feature matrix: only texts can be served")
            if device is not None and member.kind == "xr-transformer":
                member.settings_ = replace(member.settings_, device=device)

    @cached_property
    def search(self) -> LabelSearch:
        """Labels by name."""
        return LabelSearch(self.model.classes_, self.model.train_counts_)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Number of each label."""
        return vocabulary(self.model.classes_).numbers

    @cached_property
    def has_encoder(self) -> bool:
        """Whether texts go through an encoder."""
        return any(member.kind == "xr-transformer" for member in members(self.model))

    def prepare(self) -> None:
        """Make what is made late, before the first request needs it."""
        self.search, self.numbers  # noqa: B018 - made now

    def open_encoders(self) -> None:
        """Open the encoders now instead of at the first request."""
        for member in members(self.model):
            if member.kind == "xr-transformer":
                member.encoder_  # noqa: B018 - opens it

    def answer(self, pieces: list[Piece], threads: int) -> list[list[Any]]:
        """For each piece, for each of its texts: (label, score) pairs, best first, or reasons."""
        asked = [piece for piece in pieces if isinstance(piece.options, Question)]
        labelled = iter(self.label(asked, threads)) if asked else iter(())
        return [
            next(labelled) if isinstance(piece.options, Question) else self.reasons(piece)
            for piece in pieces
        ]

    def label(self, pieces: list[Piece], threads: int) -> list[list[Any]]:
        """Labels of all texts of all pieces; features are made of all together."""
        texts = [text for piece in pieces for text in piece.texts]
        X = self.features(texts)
        answers: list[list[Any]] = [[] for _ in pieces]
        for allow, chosen in by_allow_list(pieces).items():
            rows = np.concatenate([np.arange(first, last) for _, first, last in chosen])
            most = max(pieces[number].options.k for number, _, _ in chosen)
            some = X if rows.size == len(texts) else [one[rows] for one in X]
            scores = self.scores(some, most, allow, threads)
            at = 0
            for number, first, last in chosen:
                question = pieces[number].options
                for row in range(at, at + last - first):
                    answers[number].append(self.named(scores, row, question))
                at += last - first
        return answers

    def features(self, texts: list[str]) -> list[Any]:
        """Features of the texts, for each member of an ensemble."""
        return [member._features(texts) for member in members(self.model)]

    def scores(self, X: list[Any], k: int, allow: Any, threads: int) -> sp.csr_matrix:
        """Scores of the best `k`, for features that are made already."""
        options = {"allow": allow, "threads": threads}
        if len(X) == 1:
            return members(self.model)[0].predict_scores(X[0], k, **options)
        return self.model.combine_features(X, k, **options)

    def named(self, scores: sp.csr_matrix, row: int, question: Question) -> list[tuple[str, float]]:
        """A row of scores as names and numbers, as many as asked for."""
        first, last = int(scores.indptr[row]), int(scores.indptr[row + 1])
        last = min(last, first + question.k)
        names, values = scores.indices[first:last].tolist(), scores.data[first:last].tolist()
        least = -np.inf if question.threshold is None else question.threshold
        classes = self.model.classes_
        return [(str(classes[n]), v) for n, v in zip(names, values, strict=True) if v >= least]

    def reasons(self, piece: Piece) -> list[Any]:
        """Why each text gets these labels."""
        labels, words = list(piece.options.labels), piece.options.words
        return [
            [one.to_dict() for one in self.model.explain(text, labels, words=words)]
            for text in piece.texts
        ]


def members(model: Any) -> list[Any]:
    """The models of an ensemble, or the one model."""
    return list(getattr(model, "members", [model]))


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
