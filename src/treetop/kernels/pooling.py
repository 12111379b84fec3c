"""The labels of several trees in one pool, each with its score in every tree.

A tree lists the labels below its final beam. A label that only some of the trees list may still be the
best: elsewhere its score is unknown, but at most that of any node above it. So labels that cannot be
among the best are left out, and only for the rest the missing scores are worth computing.

Scores are as the search has them: logarithms, if the transform multiplies. What a tree lists are
clusters and the scores of their children (see `search`), what the search passed nodes and their scores,
documents x room each. A pool is flat, with pointers by document.
"""

import numpy as np

from treetop.kernels import PREDICTION, array, const, f4, f8, helper, i8, kernel, void
from treetop.kernels.arrays import empty, full
from treetop.kernels.beams import keep_best

BLOCK = 32  # values that are looked through together
pool_types = (const(i8), const(i8))  # pointers by document, labels
tree_types = (const(i8), const(i8), const(i8), i8)  # node_of, parent_of, child_ptr, first_leaf
list_types = (const(i8, 2), const(f4, 2))  # nodes or clusters, scores
LISTED = -2  # in the place of a node above a label, if none is needed


@helper
def list_starts(clusters, child_ptr, starts):
    """Where the scores of each cluster's children begin; returns how many clusters there are."""
    count, start = np.int64(0), np.int64(0)
    while count < clusters.size and clusters[count] >= 0:
        starts[count] = start
        start += child_ptr[clusters[count] + 1] - child_ptr[clusters[count]]
        count += 1
    return count


@helper
def sort_labels(labels, count):
    """Shell sort, ascending."""
    gap = 1
    while 3 * gap < count:
        gap = 3 * gap + 1
    while gap > 0:
        for at in range(gap, count):
            label, place = labels[at], at
            while place >= gap and labels[place - gap] > label:
                labels[place] = labels[place - gap]
                place -= gap
            labels[place] = label
        gap //= 3


@helper
def insert_score(value, best, count, k):
    """Insert into a descending list of at most `k` values; new length."""
    if count == k:
        if value <= best[k - 1]:
            return count
        count -= 1
    place = count
    while place > 0 and best[place - 1] < value:
        best[place] = best[place - 1]
        place -= 1
    best[place] = value
    return count + 1


@helper
def any_above(values, first, last, cut):
    """Whether a value exceeds `cut`. It counts them all, because the compiler makes vectors of that."""
    found = np.int32(0)
    for at in range(np.uint64(first), np.uint64(last)):
        found += np.int32(values[at] > cut)
    return found > 0


@kernel(void(const(f4), const(i8), const(i8), i8, array(f4)), use=PREDICTION)
def kth_largest(values, starts, counts, k, out):
    """The `k`-th largest of each document's `counts` values, which begin at `starts`; else -inf."""
    best = empty(k, np.float32)
    for row in range(counts.size):
        found, last = 0, starts[row] + counts[row]
        for block in range(starts[row], last, BLOCK):
            end = min(block + BLOCK, last)
            if found == k and not any_above(values, block, end, best[k - 1]):
                continue
            for at in range(block, end):
                found = insert_score(values[at], best, found, k)
        out[row] = best[k - 1] if found == k else -np.inf


@kernel(
    void(const(i8, 2), const(f4, 2), const(f4), const(i8), const(i8), i8, array(i8, 2), array(i8)),
    use=PREDICTION,
)
def reach(clusters, scores, cuts, child_ptr, label_of, first_leaf, out, out_counts):
    """Append to `out` the listed labels whose scores exceed the document's cut."""
    for row in range(cuts.size):
        count, start, cut = out_counts[row], 0, cuts[row]
        for cluster in clusters[row]:
            if cluster < 0:
                break
            first, last = child_ptr[cluster], child_ptr[cluster + 1]
            if any_above(scores[row], start, start + last - first, cut):
                for node in range(first, last):
                    if scores[row, start + node - first] > cut:
                        out[row, count] = label_of[node - first_leaf]
                        count += 1
            start += last - first
        out_counts[row] = count


@kernel(void(array(i8, 2), const(i8), array(i8), array(i8)), use=PREDICTION)
def unite(labels, counts, out_ptr, out_labels):
    """Each document's labels, ascending and once each: pointers and labels."""
    end = 0
    out_ptr[0] = 0
    for row in range(counts.size):
        sort_labels(labels[row], counts[row])
        for at in range(counts[row]):
            if at == 0 or labels[row, at] != labels[row, at - 1]:
                out_labels[end] = labels[row, at]
                end += 1
        out_ptr[row + 1] = end


@kernel(
    void(
        *pool_types,
        *tree_types,
        *list_types,
        const(f4),
        *list_types,
        const(i8),
        array(f4),
        array(i8),
    ),
    use=PREDICTION,
)
def look_up(
    ptr,
    labels,
    node_of,
    parent_of,
    child_ptr,
    first_leaf,
    clusters,
    scores,
    bounds,
    passed_nodes,
    passed_scores,
    passed_counts,
    out_limits,
    out_above,
):
    """What the scores of a pool's labels in one tree do not exceed, and which node says so.

    That is LISTED for a listed label, whose score the limit is. For another it is the lowest node above
    it that was passed, if scores fall from level to level; else the bound is infinite, and it is the
    root (-1).
    """
    starts = empty(clusters.shape[1], np.int64)
    # By node above the labels, -1 is the last: where it is among those that were passed, or minus the
    # number of its cluster among those below the beam, minus 2. Searching would take longer.
    known = full(first_leaf + 1, -1, np.int32)
    for row in range(bounds.size):
        if ptr[row] == ptr[row + 1]:
            continue
        opened = list_starts(clusters[row], child_ptr, starts)
        count = passed_counts[row] if bounds[row] < np.inf else 0
        for place in range(count):
            known[passed_nodes[row, place]] = place
        for entry in range(opened):
            known[clusters[row, entry] - 1] = -2 - entry
        for at in range(ptr[row], ptr[row + 1]):
            node = first_leaf + node_of[labels[at]]
            above = parent_of[node]
            place = known[above]
            if place < -1:
                entry = -2 - place
                score = scores[row, starts[entry] + node - child_ptr[above + 1]]
                out_limits[at], out_above[at] = score, LISTED
                continue
            while above >= 0 and place < 0:
                above = parent_of[above]
                place = known[above]
            out_limits[at] = passed_scores[row, place] if place >= 0 else bounds[row]
            out_above[at] = above if place >= 0 else -1
        for place in range(count):
            known[passed_nodes[row, place]] = -1
        for entry in range(opened):
            known[clusters[row, entry] - 1] = -1


@kernel(
    void(const(i8), const(i8), const(f8), array(i8, 2), array(f4, 2), array(i8)),
    use=PREDICTION,
)
def rank(ptr, labels, scores, out_labels, out_scores, out_counts):
    """Each document's labels with the largest scores, best first, ties to the lower label."""
    k = out_labels.shape[1]
    best = empty(k, np.float64)
    for row in range(out_counts.size):
        count = 0
        for at in range(ptr[row], ptr[row + 1]):
            count = keep_best(labels[at], scores[at], out_labels[row], best, count, k)
        for at in range(count):
            out_scores[row, at] = best[at]
        out_counts[row] = count
