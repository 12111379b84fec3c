"""Single weights of the rankers, for explanations."""

import numpy as np

from treetop.kernels import array, const, f4, i4, i8, kernel, void
from treetop.kernels.products import WIDTH, seek
from treetop.kernels.weights import row_types


@kernel(void(*row_types, const(i4), i8, i8, array(f4)), use=None)
def weights_of(row_ptr, rows, pairs, pair_values, full, features, cluster, child, out):
    """Weight of each of `features` for `child` of `cluster`; 0 where there is none."""
    for number in range(features.size):
        out[number] = 0.0
        end = np.uint64(row_ptr[features[number] + 1])
        place = seek(rows, np.uint64(row_ptr[features[number]]), end, cluster)
        if place >= end or rows[place, 0] != cluster:
            continue
        at = np.int64(rows[place, 1])
        if at < 0:
            out[number] = full[-1 - at + child // WIDTH, child % WIDTH]
            continue
        for pair in range(at + 1, at + 1 + pairs[at, 0]):
            if pairs[pair, 0] == child:
                out[number] = pair_values[pair, 1]
