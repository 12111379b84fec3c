"""Checks that the search may follow the weights of a file, in one pass over them."""

import numpy as np

from treetop.kernels import PREDICTION, array, const, i4, i8, kernel
from treetop.kernels.products import WIDTH

FINE, ROW_FALLS, WRONG_CLUSTER, WRONG_PLACE, WRONG_CHILD, NOT_FINITE = range(6)
# The bits of an exponent of a float32; all are set in infinity and NaN.
EXPONENT = np.int32(0x7F800000)


@kernel(i8(const(i8), const(i4, 2), const(i4, 2), i8, const(i8), i8, i8, array(i8)), use=PREDICTION)
def follow_rows(row_ptr, rows, pairs, vectors, child_ptr, first, last, spans):
    """Check the rows of the features `first` to `last`: what is wrong, or FINE.

    The clusters of a row ascend. Weights follow each other in `pairs`, and in the `vectors` full ones,
    in the order of `rows`. `spans` receives where they begin and end: in `pairs`, then in the vectors;
    -1 where these rows have none.
    """
    clusters = child_ptr.size - 1
    first_pair, next_pair, first_vector, next_vector = -1, -1, -1, -1
    for feature in range(first, last):
        before = -1
        for place in range(row_ptr[feature], row_ptr[feature + 1]):
            cluster, at = np.int64(rows[place, 0]), np.int64(rows[place, 1])
            if cluster >= clusters or cluster < 0:
                return WRONG_CLUSTER
            if cluster <= before:
                return ROW_FALLS
            before = cluster
            children = child_ptr[cluster + 1] - child_ptr[cluster]
            if at < 0:
                at = -1 - at
                if first_vector < 0:
                    first_vector, next_vector = at, at
                if at != next_vector:
                    return WRONG_PLACE
                next_vector = at + (children + WIDTH - 1) // WIDTH
                if next_vector > vectors:
                    return WRONG_PLACE
                continue
            if first_pair < 0:
                first_pair, next_pair = at, at
            if at != next_pair or at >= pairs.shape[0]:
                return WRONG_PLACE
            size = np.int64(pairs[at, 0])
            next_pair = at + 1 + size
            if size < 0 or next_pair > pairs.shape[0]:
                return WRONG_PLACE
            wrong, exponents = False, False
            for pair in range(at + 1, next_pair):
                child, bits = np.int64(pairs[pair, 0]), pairs[pair, 1]
                wrong |= child < 0 or child >= children
                exponents |= (bits & EXPONENT) == EXPONENT
            if wrong:
                return WRONG_CHILD
            if exponents:
                return NOT_FINITE
    spans[0], spans[1], spans[2], spans[3] = first_pair, next_pair, first_vector, next_vector
    return FINE
