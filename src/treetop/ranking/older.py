"""Weights of model folders of format 2, with 32 bits per number, as they are stored now."""

from __future__ import annotations

import numpy as np

from treetop.kernels import older
from treetop.ranking.weights import Weights, weight_form
from treetop.runtime import parallel
from treetop.runtime.arrays import Arrays


def weights_of_format_2(arrays: Arrays, threads: int) -> Weights:
    """Convert checked arrays of format 2. The weights stay the same."""
    row_ptr, rows, pairs, child_ptr = (arrays[n] for n in ("row_ptr", "rows", "pairs", "child_ptr"))
    features, largest = row_ptr.size - 1, int(np.diff(child_ptr).max())
    form = weight_form("float32", largest)
    full = np.ascontiguousarray(arrays["full"]).view(np.uint32)
    starts = np.zeros((features + 1, 2), np.int64)

    def convert(places: np.ndarray, out_rows: np.ndarray, cells: np.ndarray) -> None:
        def work(span: tuple[int, int], _: np.ndarray) -> None:
            scratch = (np.empty(largest + 1, np.int32), np.empty(largest + 1, np.uint32))
            own = (*form.tolist(), *span, *scratch, places, out_rows, cells)
            older.from_format_2(row_ptr, rows, pairs, full, child_ptr, *own)

        parallel.run(work, parallel.ranges(features, 4 * threads), threads)

    convert(starts[1:], np.empty((0, 2), np.int32), np.empty(0, np.uint16))
    np.cumsum(starts, axis=0, out=starts)
    out_rows = np.empty((int(starts[-1, 0]), 2), np.int32)
    cells = np.zeros(int(starts[-1, 1]), np.uint16)
    if cells.size:
        convert(starts, out_rows, cells)
    rest = {name: arrays[name] for name in ("dense", "biases", "child_ptr", "level_ptr")}
    return Weights(starts, out_rows, cells, form, **rest)
