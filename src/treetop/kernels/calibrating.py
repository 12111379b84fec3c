"""From raw scores to probabilities: tables that are read by linear interpolation."""

import numpy as np

from treetop.kernels import PREDICTION, array, const, f4, f8, helper, i8, kernel, void


@helper
def place_among(knots, value):
    """Where a value lies among ascending knots, in steps between them; outside, at the nearest."""
    first, last = 0, knots.size - 1
    if not value > knots[0]:
        return 0.0
    if value >= knots[last]:
        return float(last)
    while last - first > 1:
        middle = (first + last) // 2
        if knots[middle] <= value:
            first = middle
        else:
            last = middle
    return first + (value - knots[first]) / (knots[last] - knots[first])


@helper
def read_along(table, row, column):
    """A value of one column of a table, `row` in steps between its rows."""
    above = min(np.int64(row), table.shape[0] - 1)
    below = min(above + 1, table.shape[0] - 1)
    share = row - above
    return (1.0 - share) * table[above, column] + share * table[below, column]


@helper
def read_between(table, row, column):
    """A value of a table, both places in steps."""
    left = min(np.int64(column), table.shape[1] - 1)
    right = min(left + 1, table.shape[1] - 1)
    share = column - left
    return (1.0 - share) * read_along(table, row, left) + share * read_along(table, row, right)


@kernel(
    void(
        const(i8),
        const(i8),
        const(f4),
        const(i8),
        const(i8),
        *(const(f8),) * 4,
        *(const(f8, 2),) * 4,
        const(f8),
        const(f8),
        array(f4),
    ),
    use=PREDICTION,
)
def probabilities_of(
    indptr,
    labels,
    scores,
    lengths,
    label_counts,
    score_knots,
    length_knots,
    count_knots,
    margin_knots,
    by_length,
    by_count,
    by_rank,
    by_margin,
    logits,
    probabilities,
    out,
):
    """The probability of each score, not above that of the score before it in its row.

    `lengths` are by row, `label_counts` by label; the rest is `treetop.model.calibration.Calibration`.
    """
    for document in range(indptr.size - 1):
        length = place_among(length_knots, np.log1p(float(lengths[document])))
        best, lowest = 0.0, 1.0
        for at in range(indptr[document], indptr[document + 1]):
            rank = at - indptr[document]
            score = place_among(score_knots, float(scores[at]))
            if rank == 0:
                best = score
            count = place_among(count_knots, np.log1p(float(label_counts[labels[at]])))
            margin = place_among(margin_knots, best - score)
            logit = read_between(by_length, score, length) + read_between(by_count, score, count)
            logit += read_along(by_rank, score, min(rank, by_rank.shape[1] - 1))
            logit += read_between(by_margin, score, margin)
            place = place_among(logits, logit)
            left = min(np.int64(place), probabilities.size - 1)
            right = min(left + 1, probabilities.size - 1)
            share = place - left
            own = (1.0 - share) * probabilities[left] + share * probabilities[right]
            lowest = min(lowest, own)
            out[at] = np.float32(lowest)
