"""Views: the features of only some analyzers, on which a tree of a forest is trained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from treetop.features.hybrid import Features, raw_csr
from treetop.kernels import sparse as kernel
from treetop.runtime import parallel


@dataclass(frozen=True)
class View:
    """The columns of the sparse half that a tree sees, and a factor for their values."""

    seen: np.ndarray  # uint8, 1 at the columns of the view
    scale: float  # restores rows to length 1 without the other analyzers

    def of(self, X: Features, threads: int) -> Features:
        """X with only these columns, scaled. Columns keep their numbers."""
        indptr, indices, data, dense = X.arrays
        counts = np.empty(X.rows, np.int64)

        def count(task: tuple[int, int], _: np.ndarray) -> None:
            kernel.count_seen(indptr, indices, *task, self.seen, counts)

        parallel.over_ranges(count, X.rows, threads)
        ends = np.append(0, np.cumsum(counts))
        kept, values = np.empty(ends[-1], np.int32), np.empty(ends[-1], np.float32)

        def copy(task: tuple[int, int], _: np.ndarray) -> None:
            kernel.copy_seen(
                indptr, indices, data, *task, self.seen, ends, np.float32(self.scale), kept, values
            )

        parallel.over_ranges(copy, X.rows, threads)
        return Features(raw_csr(values, kept, ends, X.sparse.shape), dense)


def views_of(chosen: Sequence[Sequence[int]], widths: Sequence[int]) -> list[View]:
    """A view for each tuple of analyzer numbers in `chosen`; `widths` is the columns per analyzer.

    An empty list if every view is complete. Views without any feature are left out, as with texts too
    short for their n-grams.
    """
    nonempty = [[analyser for analyser in view if widths[analyser]] for view in chosen]
    nonempty = [view for view in nonempty if view]
    used = {analyser for view in nonempty for analyser in view}
    if all(len(view) == len(used) for view in nonempty):
        return []
    analyser_of_column = np.repeat(np.arange(len(widths)), widths)
    return [
        View(np.isin(analyser_of_column, view).astype(np.uint8), float(np.sqrt(len(used) / len(view))))
        for view in nonempty
    ]
