"""What a tree of a forest sees: the features of some analysers, not of all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from treetop.features.hybrid import Features, raw_csr
from treetop.kernels import sparse as kernel
from treetop.runtime import parallel


@dataclass(frozen=True)
class View:
    """Columns of the sparse half, and what their values are multiplied with."""

    seen: np.ndarray  # uint8, by column
    scale: float  # rows of analysers that share a length of 1 have that length without the others

    def of(self, X: Features, threads: int) -> Features:
        """The features with only these columns, scaled; their numbers stay."""
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
    """Views that see the analysers of these numbers, whose features are `widths` columns each.

    None if all see everything. One that would see nothing is left out: texts too short for its n-grams.
    """
    filled = [[analyser for analyser in view if widths[analyser]] for view in chosen]
    filled = [view for view in filled if view]
    used = {analyser for view in filled for analyser in view}
    if all(len(view) == len(used) for view in filled):
        return []
    ends = np.cumsum([0, *widths])
    made = []
    for view in filled:
        seen = np.zeros(ends[-1], np.uint8)
        for analyser in view:
            seen[ends[analyser] : ends[analyser + 1]] = 1
        made.append(View(seen, float(np.sqrt(len(used) / len(view)))))
    return made
