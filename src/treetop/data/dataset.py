"""What every reader returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import scipy.sparse as sp

from treetop.errors import TreetopError


@dataclass(frozen=True)
class Split:
    """Documents, as texts or as features, with their labels, as names or as a matrix."""

    texts: Sequence[str] | None
    labels: list[list[str]] | None
    X: sp.csr_matrix | None = None
    Y: sp.csr_matrix | None = None

    @property
    def documents(self) -> Any:
        """What an estimator's `fit` and `predict` take."""
        return self.texts if self.texts is not None else self.X

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
    """The splits of a data set."""

    format: str
    splits: dict[str, Split]
    label_names: list[str] | None = None

    def split(self, *names: str) -> Split:
        """The first split of these names that exists."""
        for name in names:
            if name in self.splits:
                return self.splits[name]
        raise TreetopError(
            f"the data has no split {' or '.join(names)}: it has {', '.join(self.splits)}"
        )
