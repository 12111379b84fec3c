"""The labels of several trees in one pool, each with its score in every tree.

A tree lists the labels below its final beam. A label that only some of the trees list may still be the
best: in the others its score is unknown, but at most the tree's bound. So the labels that cannot be
among the best are left out, and only for the rest the missing scores are worth computing.

Scores are as the search has them: logarithms, if the transform multiplies. `exponentiate` says so.
"""

import numpy as np

from treetop.kernels import PREDICTION, array, const, f4, helper, i8, kernel, void

# Rounding must not drop a label that ties with the last of the best.
SLACK = 1e-5


@helper
def value_of(score, exponentiate):
    """What a score counts in the mean over the trees."""
    return np.exp(np.float64(score)) if exponentiate else np.float64(score)


@helper
def keep_score(score, best, count, k):
    """Insert into a descending list of at most `k` scores; new length."""
    if count == k:
        if score <= best[count - 1]:
            return count
        count -= 1
    place = count
    while place > 0 and best[place - 1] < score:
        best[place] = best[place - 1]
        place -= 1
    best[place] = score
    return count + 1


@helper
def seek_slot(label, table, slot_labels):
    """Where `label` is, or would be, in a table of slots with open addressing; -1 is empty."""
    mask = table.size - 1
    at = label & mask
    while table[at] >= 0 and slot_labels[table[at]] != label:
        at = (at + 1) & mask
    return at


@helper
def sort_slots(order, labels, count):
    """Shell sort of slots by their label, ascending."""
    gap = 1
    while 3 * gap < count:
        gap = 3 * gap + 1
    while gap > 0:
        for at in range(gap, count):
            slot, place = order[at], at
            while place >= gap and labels[order[place - gap]] > labels[slot]:
                order[place] = order[place - gap]
                place -= gap
            order[place] = slot
        gap //= 3


@helper
def lowest_scores(scores, counts, bounds, row, k, exponentiate, best, cuts):
    """Fill `cuts`: a label whose largest score is below that of its tree cannot be among the `k` best.

    The `k` best of one tree have at least their share of the mean, if no tree can count less than 0.
    A label gains at most the bounds of the other trees.
    """
    trees = counts.shape[0]
    floor, bonus = -np.inf, 0.0
    for tree in range(trees):
        cuts[tree] = -np.inf
        bonus += value_of(bounds[tree, row], exponentiate) / trees
        found = 0
        for at in range(counts[tree, row]):
            found = keep_score(np.float64(scores[tree, row, at]), best, found, k)
        if found == k:
            floor = max(floor, value_of(best[k - 1], exponentiate) / trees)
    if exponentiate:
        for tree in range(trees):
            rest = floor - (bonus - value_of(bounds[tree, row], exponentiate) / trees)
            if rest > 0:
                cuts[tree] = np.log(rest) - SLACK


@helper
def collect(labels, scores, counts, row, cuts, table, places, slot_labels, slot_scores):
    """Give a slot to each label that reaches a cut, with its scores (NaN: not listed); how many."""
    trees, slots = counts.shape[0], 0
    for tree in range(trees):
        for at in range(counts[tree, row]):
            if scores[tree, row, at] < cuts[tree]:
                continue
            label = labels[tree, row, at]
            place = seek_slot(label, table, slot_labels)
            if table[place] < 0:
                table[place], places[slots], slot_labels[slots] = slots, place, label
                for other in range(trees):
                    slot_scores[slots, other] = np.nan
                slots += 1
    for tree in range(trees):
        for at in range(counts[tree, row]):
            slot = table[seek_slot(labels[tree, row, at], table, slot_labels)]
            if slot >= 0:
                slot_scores[slot, tree] = scores[tree, row, at]
    for slot in range(slots):
        table[places[slot]] = -1
    return slots


@helper
def mean_of(scores, bounds, row, exponentiate):
    """The mean over the trees of a label's scores, with the trees' bounds for missing ones."""
    total = 0.0
    for tree in range(scores.size):
        score = bounds[tree, row] if np.isnan(scores[tree]) else scores[tree]
        total += value_of(score, exponentiate)
    return total / scores.size


@helper
def least_of(scores, exponentiate):
    """The least that the mean over the trees can be: a missing score may count nothing at all."""
    total = 0.0
    for tree in range(scores.size):
        if not np.isnan(scores[tree]):
            total += value_of(scores[tree], exponentiate)
        elif not exponentiate:
            return -np.inf
    return total / scores.size


@kernel(
    void(
        const(i8, 3),
        const(f4, 3),
        const(i8, 2),
        const(f4, 2),
        i8,
        i8,
        array(i8, 2),
        array(f4, 3),
        array(i8),
    ),
    use=PREDICTION,
)
def pool(labels, scores, counts, bounds, k, exponentiate, out_labels, out_scores, out_counts):
    """The labels that may be among the `k` best of each document, ascending, with their scores by tree.

    `labels` and `scores` are trees x documents x room, filled up to `counts`; `out_scores` is
    documents x room x trees, NaN where a tree does not list the label.
    """
    trees, rows = counts.shape
    room = out_labels.shape[1]
    size = 64
    while size < 2 * room:
        size *= 2
    table, places = np.full(size, -1, np.int32), np.empty(room, np.int64)
    slot_labels, slot_scores = np.empty(room, np.int64), np.empty((room, trees), np.float32)
    best, cuts, order = np.empty(k, np.float64), np.empty(trees), np.empty(room, np.int64)
    for row in range(rows):
        lowest_scores(scores, counts, bounds, row, k, exponentiate, best, cuts)
        slots = collect(labels, scores, counts, row, cuts, table, places, slot_labels, slot_scores)
        found = 0
        for slot in range(slots):
            found = keep_score(least_of(slot_scores[slot], exponentiate), best, found, k)
        floor = best[k - 1] if found == k else -np.inf
        kept = 0
        for slot in range(slots):
            if mean_of(slot_scores[slot], bounds, row, exponentiate) >= floor:
                order[kept] = slot
                kept += 1
        sort_slots(order, slot_labels, kept)
        for at in range(kept):
            out_labels[row, at] = slot_labels[order[at]]
            for tree in range(trees):
                out_scores[row, at, tree] = slot_scores[order[at], tree]
        out_counts[row] = kept


@kernel(void(array(i8, 2), const(i8), i8, const(i8)), use=PREDICTION)
def name_leaves(nodes, counts, first_leaf, label_of):
    """Replace the nodes of each row by their labels, in place."""
    for row in range(counts.size):
        for at in range(counts[row]):
            nodes[row, at] = label_of[nodes[row, at] - first_leaf]


@kernel(
    void(
        const(i8, 2),
        const(f4, 2),
        const(i8),
        i8,
        const(i8, 2),
        const(i8),
        array(f4, 3),
    ),
    use=PREDICTION,
)
def complete(labels, scores, counts, tree, pooled, pooled_counts, pooled_scores):
    """Fill in the scores of one tree that were missing in `pooled_scores`; see `pool`."""
    for row in range(counts.size):
        for at in range(counts[row]):
            label, first, last = labels[row, at], 0, pooled_counts[row]
            while first < last:
                middle = (first + last) // 2
                if pooled[row, middle] < label:
                    first = middle + 1
                else:
                    last = middle
            pooled_scores[row, first, tree] = scores[row, at]


@kernel(
    void(
        const(i8, 2),
        const(f4, 3),
        const(i8),
        const(f4, 2),
        i8,
        array(i8, 2),
        array(f4, 2),
        array(i8),
    ),
    use=PREDICTION,
)
def rank(labels, scores, counts, bounds, exponentiate, out_labels, out_scores, out_counts):
    """The labels with the largest mean score of each document, best first, ties to the lower label."""
    k = out_labels.shape[1]
    best = np.empty(k, np.float64)
    for row in range(counts.size):
        count = 0
        for at in range(counts[row]):
            score = mean_of(scores[row, at], bounds, row, exponentiate)
            if count == k:
                if score <= best[count - 1]:
                    continue
                count -= 1
            place = count
            while place > 0 and best[place - 1] < score:
                best[place], out_labels[row, place] = best[place - 1], out_labels[row, place - 1]
                place -= 1
            best[place], out_labels[row, place] = score, labels[row, at]
            count += 1
        for at in range(count):
            out_scores[row, at] = best[at]
        out_counts[row] = count
