"""The data set that every reader returns and every writer takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from treetop.data.reading import Recognized
from treetop.errors import TreetopError
from treetop.features.given import TextsWithFeatures, read_features
from treetop.labels.vocabulary import vocabulary_of
from treetop.runtime.texts import kept_texts

SPLITS = ("train", "dev", "test")


@dataclass(frozen=True)
class Split:
    """Documents as texts or features, with labels as names or as a matrix.

    `texts` or `X`, a sparse matrix of shape (N, d), holds the documents; both if the texts have ready
    features. `labels`, lists of names, or
    `Y`, a sparse matrix of shape (N, L), holds their labels; neither is set for unlabeled documents.
    `excluded`, of the shape of `Y`, marks pairs of document and label that are left out of evaluation,
    such as links of a page to itself in LF data sets. `records` are the rows of a table with all their
    columns, if the reader was asked to keep them.
    """

    texts: Sequence[str] | None
    labels: list[list[str]] | None
    X: sp.csr_matrix | None = None
    Y: sp.csr_matrix | None = None
    excluded: sp.csr_matrix | None = None
    records: list[dict[str, Any]] | None = None

    @property
    def documents(self) -> Sequence[str] | sp.csr_matrix | TextsWithFeatures | None:
        """Texts, features or texts with features, as `fit` and `predict` take them."""
        if self.texts is not None and self.X is not None:
            return TextsWithFeatures(self.texts, read_features(self.X))
        return self.texts if self.texts is not None else self.X

    @property
    def given_labels(self) -> list[list[str]] | sp.csr_matrix | None:
        """Lists of names or a matrix, as `fit` takes them; None for unlabeled documents."""
        return self.labels if self.labels is not None else self.Y

    @property
    def has_labels(self) -> bool:
        """Whether the documents have labels in either form."""
        return self.given_labels is not None

    def __len__(self) -> int:
        return len(self.texts) if self.texts is not None else int(self.X.shape[0])  # type: ignore[union-attr]

    def __repr__(self) -> str:
        kind = "texts" if self.texts is not None else f"rows of {self.X.shape[1]:,} features"  # type: ignore[union-attr]
        if self.texts is not None and self.X is not None:
            kind += f" with {self.X.shape[1]:,} features"
        return f"Split({len(self):,} {kind}{'' if self.has_labels else ', no labels'})"

    def rows(self, rows: np.ndarray) -> Split:
        """The documents of these row numbers."""

        def selected(kind: str) -> Any:
            values = getattr(self, kind)
            if values is None or sp.issparse(values):
                return None if values is None else values[rows]
            own = (values[row] for row in rows.tolist())
            return kept_texts(own) if kind == "texts" else list(own)

        return Split(**{kind: selected(kind) for kind in vars(self)})

    def label_sizes(self) -> np.ndarray:
        """The number of labels of each document: int64 of shape (N,)."""
        if self.labels is not None:
            return np.fromiter(map(len, self.labels), np.int64, len(self.labels))
        return np.diff(self.Y.indptr).astype(np.int64) if self.Y is not None else np.zeros(0, np.int64)

    def label_counts(self, names: Sequence[str] | None) -> Counter[str]:
        """The number of documents per label that has any; `names` as in `named_labels`."""
        if self.labels is not None or self.Y is None:
            return Counter(label for line in self.labels or () for label in line)
        counts: Counter[str] = Counter()
        frequencies = np.bincount(self.Y.indices, minlength=self.Y.shape[1])
        for label in np.flatnonzero(frequencies).tolist():
            counts[str(label) if names is None else names[label]] += int(frequencies[label])
        return counts

    def named_labels(self, names: Sequence[str] | None) -> list[list[str]]:
        """Labels as lists of names; columns of a matrix without `names` are named by their numbers."""
        if self.labels is not None:
            return self.labels
        if self.Y is None:
            raise TreetopError("the data has no labels")
        known = names if names is not None else [str(n) for n in range(self.Y.shape[1])]
        rows = zip(self.Y.indptr[:-1], self.Y.indptr[1:], strict=True)
        return [[known[label] for label in self.Y.indices[a:b].tolist()] for a, b in rows]


@dataclass(frozen=True)
class Dataset:
    """The splits of a data set, and the format they were read from.

    `label_names` are the names of the columns of `Y`, `label_texts` the labels' own texts in the same
    order. `label_titles` are the names of labels that are identified by a URI, by URI. `reading` says
    what the reader had to detect, such as columns and separators.
    """

    format: str
    splits: dict[str, Split]
    label_names: list[str] | None = None
    label_texts: list[str] | None = None
    label_titles: dict[str, str] | None = None
    reading: Recognized = field(default_factory=Recognized)

    def __repr__(self) -> str:
        splits = ", ".join(f"{name}={split!r}" for name, split in self.splits.items())
        return f"Dataset({self.detected}: {splits})"

    @property
    def detected(self) -> str:
        """The format with the reader's detail, on one line: ``csv (texts in 'title', …)``."""
        detail = self.reading.detail
        return f"{self.format} ({detail})" if detail else self.format

    def split(self, *names: str) -> Split:
        """The first of the named splits that exists."""
        for name in names:
            if name in self.splits:
                return self.splits[name]
        raise TreetopError(
            f"the data has no split {' or '.join(names)}: it has {', '.join(self.splits)}"
        )

    def with_matrices(self) -> Dataset:
        """A copy with labels as matrices whose columns are the same names in every split."""
        if all(split.labels is None for split in self.splits.values()):
            width = max((s.Y.shape[1] for s in self.splits.values() if s.Y is not None), default=0)
            names = self.label_names or [str(number) for number in range(width)]
            return replace(self, label_names=names)
        named = {n: s.named_labels(self.label_names) for n, s in self.splits.items() if s.has_labels}
        vocabulary = vocabulary_of([line for lines in named.values() for line in lines])
        splits = {
            name: replace(
                split,
                labels=None,
                Y=vocabulary.encode(named[name]) if name in named else None,
                excluded=None,  # its columns were those of the former Y
            )
            for name, split in self.splits.items()
        }
        return replace(self, splits=splits, label_names=vocabulary.names, label_texts=None)

    def same_width(self) -> Dataset:
        """A copy whose splits agree in the width of X and Y; Y has at least a column per label name."""

        def widen(kind: str, split: Split) -> sp.csr_matrix | None:
            widths = [m.shape[1] for s in self.splits.values() if (m := getattr(s, kind)) is not None]
            width = max(*widths, len(self.label_names or ()) if kind == "Y" else 0, 0)
            matrix = getattr(split, kind)
            if matrix is None or matrix.shape[1] == width:
                return matrix
            cells = (matrix.data, matrix.indices, matrix.indptr)
            return sp.csr_matrix(cells, shape=(matrix.shape[0], width))

        splits = {
            name: replace(split, X=widen("X", split), Y=widen("Y", split))
            for name, split in self.splits.items()
        }
        return replace(self, splits=splits)


def clean_labels(Y: sp.csr_matrix) -> sp.csr_matrix:
    """Y without stored zeros; of duplicate entries the one with the larger relevance is kept."""
    cells = sp.coo_matrix(Y if Y.dtype.kind == "f" else Y.astype(np.float32))  # keeps duplicates apart
    order = np.lexsort((-cells.data, cells.col, cells.row))
    row, column, value = cells.row[order], cells.col[order], cells.data[order]
    first = np.ones(row.size, bool)
    first[1:] = (np.diff(row) != 0) | (np.diff(column) != 0)
    kept = first & (value != 0)
    return sp.csr_matrix((value[kept], (row[kept], column[kept])), shape=Y.shape)


def check_label_count(path: Path | None, names: int, labels: int) -> None:
    """Raise unless a file has one name per line for every label."""
    if names != labels:
        raise TreetopError(
            f"{path}: {names:,} label names for {labels:,} labels: it must have one name per line"
        )
