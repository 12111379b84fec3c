"""Beam search from the root to the labels, one document at a time.

Weights are kept by feature: the row of a feature lists the clusters it has weights in, ascending,
and for each the children and values, or a full vector of values where most children have one.
A document's features are looked up once for the whole search; what a level needs of a row follows
what the level above needed. Nodes are numbered through all levels; the children of node n are the
cluster n + 1, and cluster 0 is the root's.
"""

import numpy as np

from treetop.kernels import PREDICTION, array, const, f4, helper, hybrid, i8, kernel, u1, void
from treetop.kernels.beams import Beam, keep_best, mark_candidates, sort_beam
from treetop.kernels.lanes import prefetch
from treetop.kernels.products import WIDTH, add_weights, find_weights, score_dense
from treetop.kernels.transforms import ADD, transform
from treetop.kernels.weights import DocumentRows, SearchWeights, weight_types

level_types = (i8, i8, const(i8), i8, i8, i8, const(i8), const(i8), const(i8))
limit_types = (const(u1), const(i8), const(i8), const(i8))
start_types = (const(i8), const(i8), const(f4))
result_types = (array(i8, 2), array(f4, 2), array(i8), array(f4))


@helper
def start_row(row, documents, weights, places, ends):
    """Look up where the rows of a document's features begin and end."""
    start, size = documents.indptr[row], documents.indptr[row + 1] - documents.indptr[row]
    indices, row_ptr = documents.indices, weights.row_ptr
    for number in range(size):
        prefetch(row_ptr, indices[start + number])
    for number in range(size):
        places[number] = row_ptr[indices[start + number]]
        ends[number] = row_ptr[indices[start + number] + 1]
        prefetch(weights.rows, places[number])
    return start, size


@helper
def search_row(
    row,
    documents,
    weights,
    levels,
    widths,
    transforms,
    allowed,
    visited,
    found,
    beam,
    out_nodes,
    out_scores,
):
    """Search for one document from the `found` nodes of the first of `levels` in `beam`.

    `visited` is empty unless the document may reach only the nodes marked there. Fills `out_nodes` and
    `out_scores`: best first, or with `widths` for all nodes of the last level, in ascending order.
    Returns how many, and a bound that no node below a node that left the beam exceeds.
    """
    first_level, depth = levels
    beam_widths, top, stride, whole = widths
    kinds, powers, combines = transforms
    dense, child_ptr, raw = documents.dense, weights.child_ptr, beam.raw
    nodes, scores, clusters, counts = beam.nodes, beam.scores, beam.clusters, beam.counts
    start, size = start_row(row, documents, weights, beam.places, beam.ends)
    bound = -np.float32(np.inf)
    for level in range(first_level, depth):
        last_level = level == depth - 1
        listed = last_level and whole
        sort_beam(nodes, scores, found)
        for at in range(found):
            cluster = nodes[at] + 1
            clusters[at] = cluster
            counts[at] = child_ptr[cluster + 1] - child_ptr[cluster]
            beam.beam_of[cluster] = at
            for child in range(counts[at]):
                raw[at * stride + child] = weights.biases[child_ptr[cluster] + child]
        hits = find_weights(
            documents.data,
            start,
            beam.places[:size],
            beam.ends[:size],
            clusters[:found],
            beam.beam_of,
            weights.level_ptr[level + 1],
            weights.rows,
            beam.hit_entry,
            beam.hit_at,
            beam.hit_x,
        )
        add_weights(np.int64(hits), beam, stride, weights)
        width = top if last_level else beam_widths[level]
        kind, power, combine = kinds[level], powers[level], combines[level]
        count = 0
        for at in range(found):
            cluster = clusters[at]
            beam.beam_of[cluster] = -1
            first, last = child_ptr[cluster], child_ptr[cluster + 1]
            if dense.shape[1]:
                score_dense(dense, row, first, last - first, weights.dense, raw, at * stride)
            above = scores[at] if combine == ADD else np.float32(0.0)
            for node in range(first, last):
                if allowed.size and not allowed[node]:
                    continue
                if visited.size and visited[node] != row + 1:
                    continue
                worth = transform(raw[at * stride + node - first], kind, power)
                score = above + np.float32(worth)
                if listed:
                    out_nodes[count], out_scores[count] = node, score
                    count += 1
                else:
                    count = keep_best(node, score, beam.best_nodes, beam.best_scores, count, width)
        if last_level:
            for at in range(0 if whole else count):
                out_nodes[at], out_scores[at] = beam.best_nodes[at], beam.best_scores[at]
            return count, bound
        if count == width:  # others may have been dropped
            added = combines[depth - 1] == ADD
            worst = beam.best_scores[count - 1] if added else np.float32(np.inf)
            bound = max(bound, worst)
        for at in range(count):
            nodes[at], scores[at] = beam.best_nodes[at], beam.best_scores[at]
        found = count
    return 0, bound


@kernel(
    void(
        *hybrid,
        i8,
        i8,
        *weight_types,
        *level_types,
        *limit_types,
        *start_types,
        *result_types,
        array(u1),
    ),
    use=PREDICTION,
)
def search(
    indptr,
    indices,
    data,
    dense,
    first_row,
    last_row,
    row_ptr,
    rows,
    pairs,
    pair_values,
    full,
    dense_weights,
    biases,
    child_ptr,
    level_ptr,
    first_level,
    depth,
    beams,
    top,
    whole,
    largest,
    kinds,
    powers,
    combines,
    allowed,
    parent_of,
    candidate_ptr,
    candidates,
    start_ptr,
    start_nodes,
    start_scores,
    out_nodes,
    out_scores,
    out_counts,
    out_bounds,
    cancel,
):
    """The best `top` nodes of level `depth` for documents `first_row` to `last_row`.

    With `whole` all nodes of that level below the final beam, unsorted; there are at most `top`.
    `out_bounds` is what no other node below the documents' beams can exceed (-inf: there is none).

    `level_ptr` says where each level's clusters begin. `allowed` (empty: all) marks the nodes that
    may be entered. With candidates (`candidate_ptr`, relative to `first_row`, not empty) a document
    reaches only its own nodes of level `depth`. `largest` is the size of the largest cluster.
    A search begins at the root, or (`start_ptr`, likewise) at nodes of `first_level`, at most as many
    per document as the widest beam.

    `beams`, `kinds`, `powers` and `combines` have a value for each level from 1 to `depth`.
    """
    beam = beams.max()
    widest = beam if whole else max(beam, top)
    nodes, scores = np.empty(widest, np.int64), np.empty(widest, np.float32)
    best_nodes, best_scores = np.empty(widest, np.int64), np.empty(widest, np.float32)
    clusters, counts = np.empty(widest, np.int64), np.empty(widest, np.int64)
    stride = (largest + WIDTH - 1) // WIDTH * WIDTH
    raw = np.zeros(max(beam, 1) * stride, np.float32)
    beam_of = np.full(child_ptr.size - 1, -1, np.int32)
    restricted = candidate_ptr.size > 0
    visited = np.zeros(parent_of.size if restricted else 0, np.int64)
    longest = 0
    for row in range(first_row, last_row):
        longest = max(longest, indptr[row + 1] - indptr[row])
    places, ends = np.empty(longest, np.uint64), np.empty(longest, np.uint64)
    room = longest * max(beam, 1) + 1
    hit_entry, hit_at = np.empty(room, np.int32), np.empty(room, np.int32)
    hit_x = np.empty(room, np.float32)
    documents = DocumentRows(indptr, indices, data, dense)
    weights = SearchWeights(
        row_ptr, rows, pairs, pair_values, full, dense_weights, biases, child_ptr, level_ptr
    )
    levels, transforms = (first_level, depth), (kinds, powers, combines)
    widths = (beams, top, stride, whole != 0)
    scratch = Beam(
        nodes,
        scores,
        best_nodes,
        best_scores,
        clusters,
        counts,
        raw,
        beam_of,
        places,
        ends,
        hit_entry,
        hit_at,
        hit_x,
    )

    for row in range(first_row, last_row):
        if cancel[0]:
            return
        at_row = row - first_row
        if restricted:
            first, last = candidate_ptr[at_row], candidate_ptr[at_row + 1]
            if first == last:
                out_counts[at_row], out_bounds[at_row] = 0, -np.inf
                continue
            mark_candidates(candidates, first, last, parent_of, visited, row + 1)
        nodes[0], scores[0], found = -1, 0.0, 1
        if start_ptr.size:
            first = start_ptr[at_row]
            found = start_ptr[at_row + 1] - first
            for at in range(found):
                nodes[at] = start_nodes[first + at]
                scores[at] = start_scores[first + at]
        out_counts[at_row], out_bounds[at_row] = search_row(
            row,
            documents,
            weights,
            levels,
            widths,
            transforms,
            allowed,
            visited,
            found,
            scratch,
            out_nodes[at_row],
            out_scores[at_row],
        )
