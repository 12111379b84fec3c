"""What every reader returns and every writer takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from treetop.errors import TreetopError
from treetop.labels.vocabulary import vocabulary_of

SPLITS = ("train", "dev", "test")


class Columns(NamedTuple):
    """Which columns of a table hold texts and labels; None: guess."""

    text: str | None = None
    labels: str | None = None


@dataclass(frozen=True)
class Split:
    """Documents, as texts or as features, with their labels, as names or as a matrix.

    `excluded`: pairs of document and label that are left out of scoring (LF sets: a page's link to
    itself).
    """

    texts: Sequence[str] | None
    labels: list[list[str]] | None
    X: sp.csr_matrix | None = None
    Y: sp.csr_matrix | None = None
    excluded: sp.csr_matrix | None = None

    @property
    def documents(self) -> Sequence[str] | sp.csr_matrix | None:
        """What an estimator's `fit` and `predict` take."""
        return self.texts if self.texts is not None else self.X

    @property
    def given_labels(self) -> list[list[str]] | sp.csr_matrix | None:
        """Labels in the form they came in, as `fit` takes them; None if there are none."""
        return self.labels if self.labels is not None else self.Y

    @property
    def has_labels(self) -> bool:
        """Whether there are labels in either form."""
        return self.given_labels is not None

    def __len__(self) -> int:
        return len(self.texts) if self.texts is not None else int(self.X.shape[0])  # type: ignore[union-attr]

    def named_labels(self, names: Sequence[str] | None) -> list[list[str]]:
        """Labels as lists of names, whatever form they came in."""
        if self.labels is not None:
            return self.labels
        if self.Y is None:
            raise TreetopError("the data has no labels")
        known = names if names is not None else [str(n) for n in range(self.Y.shape[1])]
        rows = zip(self.Y.indptr[:-1], self.Y.indptr[1:], strict=True)
        return [[known[label] for label in self.Y.indices[a:b].tolist()] for a, b in rows]


@dataclass(frozen=True)
class Dataset:
    """The splits of a data set. `label_texts`: what labels say of themselves, in the names' order."""

    format: str
    splits: dict[str, Split]
    label_names: list[str] | None = None
    label_texts: list[str] | None = None

    def split(self, *names: str) -> Split:
        """The first split of these names that exists."""
        for name in names:
            if name in self.splits:
                return self.splits[name]
        raise TreetopError(
            f"the data has no split {' or '.join(names)}: it has {', '.join(self.splits)}"
        )

    def with_matrices(self) -> Dataset:
        """The same with labels as Y, one column a name for all splits."""
        if all(split.labels is None for split in self.splits.values()):
            width = max((s.Y.shape[1] for s in self.splits.values() if s.Y is not None), default=0)
            names = self.label_names or [str(number) for number in range(width)]
            return Dataset(self.format, self.splits, names, self.label_texts)
        named = {n: s.named_labels(self.label_names) for n, s in self.splits.items() if s.has_labels}
        vocabulary = vocabulary_of([line for lines in named.values() for line in lines])
        splits = {
            name: Split(
                split.texts, None, split.X, vocabulary.encode(named[name]) if name in named else None
            )
            for name, split in self.splits.items()
        }
        return Dataset(self.format, splits, vocabulary.names)

    def same_width(self) -> Dataset:
        """The same with as many columns of X, and of Y, in every split; of Y at least one a name."""

        def widen(kind: str, split: Split) -> sp.csr_matrix | None:
            widths = [m.shape[1] for s in self.splits.values() if (m := getattr(s, kind)) is not None]
            width = max(*widths, len(self.label_names or ()) if kind == "Y" else 0, 0)
            made = getattr(split, kind)
            if made is None or made.shape[1] == width:
                return made
            return sp.csr_matrix((made.data, made.indices, made.indptr), shape=(made.shape[0], width))

        splits = {
            name: Split(one.texts, one.labels, widen("X", one), widen("Y", one), one.excluded)
            for name, one in self.splits.items()
        }
        return Dataset(self.format, splits, self.label_names, self.label_texts)


def clean_labels(Y: sp.csr_matrix) -> sp.csr_matrix:
    """Y without stored zeros; a label given twice counts once, with the larger relevance."""
    cells = sp.coo_matrix(Y)
    order = np.lexsort((-cells.data, cells.col, cells.row))
    row, column, value = cells.row[order], cells.col[order], cells.data[order]
    first = np.ones(row.size, bool)
    first[1:] = (np.diff(row) != 0) | (np.diff(column) != 0)
    kept = first & (value != 0)
    return sp.csr_matrix((value[kept], (row[kept], column[kept])), shape=Y.shape)


def check_label_names(path: Path | None, names: list[str], labels: int) -> None:
    """Raise unless there is a name for every label, and no name twice."""
    if len(names) != labels:
        raise TreetopError(f"{path}: {len(names):,} label names for {labels:,} labels")
    if len(set(names)) != len(names):
        found, counts = np.unique(names, return_counts=True)
        raise TreetopError(f"{path}: the label name {str(found[counts > 1][0])!r} occurs twice")
