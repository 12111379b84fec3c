"""Checks that the search may follow the weights of a file, in one pass over them."""

import numpy as np

from treetop.kernels import PREDICTION, array, const, helper, i4, i8, kernel, u2
from treetop.kernels.words import EXPONENT as WORD_EXPONENT
from treetop.kernels.words import SIXTEEN, WIDTH, full_words, number_at

FINE, ROW_FALLS, WRONG_CLUSTER, WRONG_PLACE, WRONG_CHILD, NOT_FINITE = range(6)
# The bits of an exponent of a float32; all are set in infinity and NaN.
EXPONENT = np.int32(0x7F800000)


@kernel(i8(const(i8), const(i4, 2), const(i4, 2), i8, const(i8), i8, i8, array(i8)), use=None)
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


@helper
def is_finite(word):
    """Whether a float32 with this upper word is finite."""
    return (np.uint32(word) & WORD_EXPONENT) != WORD_EXPONENT


@helper
def follow_cells(mark, at, end, children, cells, child_words, value_words):
    """Check the weights behind a mark of at least 0, whose cells begin at `at` and end before `end`.

    Returns what is wrong, or FINE, and where they end. `children` is the size of the cluster.
    """
    fine, upper = True, value_words - 1
    if mark & 1:
        after = at + full_words(children, value_words)
        if after > end:
            return WRONG_PLACE, at
        for place in range(at + upper, after, value_words):
            fine &= is_finite(cells[place])
        return FINE if fine else NOT_FINITE, after
    if at + child_words > end:
        return WRONG_PLACE, at
    size = np.int64(number_at(cells, np.uint64(at), child_words))
    at += child_words
    after = at + size * (child_words + value_words)
    if size == 0 or after > end:
        return WRONG_PLACE, at
    known = True
    for place in range(at, after, child_words + value_words):
        known &= np.int64(number_at(cells, np.uint64(place), child_words)) < children
        fine &= is_finite(cells[place + child_words + upper])
    if not known:
        return WRONG_CHILD, after
    return FINE if fine else NOT_FINITE, after


@kernel(i8(const(i8, 2), const(i4, 2), const(u2), const(i8), const(i8), i8, i8), use=PREDICTION)
def follow_marks(starts, rows, cells, form, child_ptr, first, last):
    """Check the rows of the features `first` to `last`: what is wrong, or FINE.

    The clusters of a row ascend, and the cells follow each other in the order of `rows`.
    """
    clusters, child_words, value_words = child_ptr.size - 1, form[0], form[1]
    for feature in range(first, last):
        before, base = np.int64(-1), starts[feature, 1]
        at, end = base, starts[feature + 1, 1]
        for place in range(starts[feature, 0], starts[feature + 1, 0]):
            cluster, mark = np.int64(rows[place, 0]), np.int64(rows[place, 1])
            if cluster >= clusters or cluster < 0:
                return WRONG_CLUSTER
            if cluster <= before:
                return ROW_FALLS
            before = cluster
            children = child_ptr[cluster + 1] - child_ptr[cluster]
            if mark < 0:
                bits = np.uint32(mark)
                if np.int64((bits >> SIXTEEN) & np.uint32(0x7FFF)) >= children:
                    return WRONG_CHILD
                if not is_finite(bits & np.uint32(0xFFFF)):
                    return NOT_FINITE
                continue
            if at - base != mark >> 1:
                return WRONG_PLACE
            fault, at = follow_cells(mark, at, end, children, cells, child_words, value_words)
            if fault != FINE:
                return fault
        if at != end:
            return WRONG_PLACE
    return FINE
