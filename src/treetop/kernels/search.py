"""Beam search from the root to the labels, one document at a time.

Weights are kept by feature: the row of a feature lists the clusters it has weights in, ascending,
and for each where its weights are: see `words`.
A document's features are looked up once for the whole search; what a level needs of a row follows
what the level above needed. Nodes are numbered through all levels; the children of node n are the
cluster n + 1, and cluster 0 is the root's.
"""

import numpy as np

from treetop.kernels import PREDICTION, array, const, f4, helper, hybrid, i8, kernel, u1, void
from treetop.kernels.arrays import full
from treetop.kernels.beams import (
    keep_best,
    mark_candidates,
    new_beam,
    open_clusters,
    sort_beam,
    start_beam,
)
from treetop.kernels.lanes import prefetch
from treetop.kernels.products import add_weights, find_weights, score_dense
from treetop.kernels.transforms import ADD, transform_all
from treetop.kernels.weights import (
    DocumentRows,
    SearchWeights,
    largest_of,
    longest_row,
    weight_types,
)
from treetop.kernels.words import WIDTH

level_types = (i8, i8, const(i8), i8, i8, i8, const(i8), const(i8), const(i8))
limit_types = (const(u1), const(i8), const(i8), const(i8))
start_types = (const(i8), const(i8), const(f4))
result_types = (array(i8, 2), array(f4, 2), array(i8), array(f4))
passed_types = (array(i8, 2), array(f4, 2), array(i8))


@helper
def start_row(row, documents, weights, beam):
    """Look up where the rows of a document's features begin and end, and their cells."""
    start, size = documents.indptr[row], documents.indptr[row + 1] - documents.indptr[row]
    indices, starts = documents.indices, weights.starts
    for number in range(size):
        prefetch(starts, indices[start + number])
    for number in range(size):
        feature = indices[start + number]
        beam.places[number] = starts[feature, 0]
        beam.ends[number] = starts[feature + 1, 0]
        beam.bases[number] = 2 * starts[feature, 1]
        prefetch(weights.rows, beam.places[number])
    return start, size


@helper
def list_scores(raw, start, first, last, allowed, out_scores, count):
    """Append the scores of the nodes `first` to `last`, -inf for those not allowed; new length."""
    for node in range(first, last):
        kept = not allowed.size or allowed[node]
        out_scores[count] = raw[start + node - first] if kept else -np.float32(np.inf)
        count += 1
    return count


@helper
def search_row(row, documents, weights, levels, widths, transforms, marks, found, beam, out, passed):
    """Search for one document from the `found` nodes of the first of `levels` in `beam`.

    `marks` are the nodes that may be entered, and those that this document may reach; each is empty if
    all are. Fills `out`, nodes and scores, best first, or as `widths` say all below the final beam (see
    `search`). Returns how many scores, a bound that no node below a node that left the beam exceeds,
    and how many nodes of the levels above were noted in `passed`, which may have no room.
    """
    first_level, depth = levels
    beam_widths, top, stride, whole = widths
    kinds, powers, combines = transforms
    (allowed, visited), (out_nodes, out_scores) = marks, out
    passed_nodes, passed_scores = passed
    noting, noted = passed_nodes.size > 0, 0
    dense, child_ptr, raw = documents.dense, weights.child_ptr, beam.raw
    nodes, scores, clusters = beam.nodes, beam.scores, beam.clusters
    start, size = start_row(row, documents, weights, beam)
    bound = -np.float32(np.inf)
    for level in range(first_level, depth):
        last_level = level == depth - 1
        listed = last_level and whole
        sort_beam(nodes, scores, found)
        open_clusters(beam, found, stride, weights.biases, child_ptr)
        hits = find_weights(
            documents.data,
            start,
            beam.places[:size],
            beam.ends[:size],
            beam.bases[:size],
            clusters[:found],
            beam.beam_of,
            weights.level_ptr[level + 1],
            weights.rows,
            beam.hits,
            beam.hit_x,
        )
        add_weights(np.int64(hits), beam, stride, weights)
        # One more than the beam's width: the best of those that it leaves out bounds all of them.
        width = top if last_level else beam_widths[level] + 1
        kind, power, combine = kinds[level], powers[level], combines[level]
        count = 0
        for at in range(found):
            cluster = clusters[at]
            beam.beam_of[cluster] = -1
            first, last = child_ptr[cluster], child_ptr[cluster + 1]
            if dense.shape[1]:
                score_dense(dense, row, first, last - first, weights.dense, raw, at * stride)
            above = scores[at] if combine == ADD else np.float32(0.0)
            transform_all(raw, at * stride, last - first, above, kind, power)
            if listed and not visited.size:
                out_nodes[at] = cluster
                count = list_scores(raw, at * stride, first, last, allowed, out_scores, count)
                continue
            for node in range(first, last):
                if allowed.size and not allowed[node]:
                    continue
                if visited.size and visited[node] != row + 1:
                    continue
                score = raw[at * stride + node - first]
                if listed:
                    out_nodes[count], out_scores[count] = node, score
                    count += 1
                else:
                    count = keep_best(node, score, beam.best_nodes, beam.best_scores, count, width)
                    if noting:
                        passed_nodes[noted], passed_scores[noted] = node, score
                        noted += 1
        if listed and not visited.size and found < out_nodes.size:
            out_nodes[found] = -1
        if last_level:
            for at in range(0 if whole else count):
                out_nodes[at], out_scores[at] = beam.best_nodes[at], beam.best_scores[at]
            return count, bound, noted
        if count == width:
            count -= 1
            added = combines[depth - 1] == ADD
            bound = max(bound, beam.best_scores[count] if added else np.float32(np.inf))
        for at in range(count):
            nodes[at], scores[at] = beam.best_nodes[at], beam.best_scores[at]
        found = count
    return 0, bound, noted


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
        *passed_types,
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
    starts,
    rows,
    cells,
    form,
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
    passed_nodes,
    passed_scores,
    passed_counts,
    cancel,
):
    """The best `top` nodes of level `depth` for documents `first_row` to `last_row`.

    With `whole` all nodes of that level below the final beam: the beam's clusters, ascending (-1 comes
    after the last), and the scores of their children one after another, -inf for those not allowed;
    with candidates instead these and their scores, ascending, at most `top`.
    `out_bounds` is what no other node can exceed (-inf: there is none). With `whole`, `passed_nodes`
    are all nodes above that level which the search scored, ascending, with their scores.
    `level_ptr` says where each level's clusters begin. `allowed` (empty: all) marks the nodes that
    may be entered. With candidates (`candidate_ptr`, relative to `first_row`, not empty) a document
    reaches only its own nodes of level `depth`. `largest` is the size of the largest cluster. A search
    begins at the root, or (`start_ptr`, likewise) at nodes of `first_level`, at most as many per
    document as the widest of `beams`. `beams`, `kinds`, `powers` and `combines` are by level.
    """
    beam = largest_of(beams)
    stride = (largest + WIDTH - 1) // WIDTH * WIDTH
    visited = full(parent_of.size if candidate_ptr.size else 0, 0, np.int64)
    longest = longest_row(indptr, first_row, last_row)
    widest = 1 + beam if whole else max(1 + beam, top)
    scratch = new_beam(max(beam, 1), widest, stride, child_ptr.size - 1, longest)
    documents = DocumentRows(indptr, indices, data, dense)
    weights = SearchWeights(starts, rows, cells, form, dense_weights, biases, child_ptr, level_ptr)
    levels, transforms, marks = (first_level, depth), (kinds, powers, combines), (allowed, visited)
    widths = (beams, top, stride, whole != 0)
    for at_row in range(last_row - first_row):
        if cancel[0]:
            return
        row = first_row + at_row
        if candidate_ptr.size and not mark_candidates(
            at_row, candidate_ptr, candidates, parent_of, visited, row + 1
        ):
            out_counts[at_row], out_bounds[at_row], passed_counts[at_row] = 0, -np.inf, 0
            continue
        found = start_beam(scratch, at_row, start_ptr, start_nodes, start_scores)
        out = (out_nodes[at_row], out_scores[at_row])
        passed = (passed_nodes[at_row], passed_scores[at_row])
        out_counts[at_row], out_bounds[at_row], passed_counts[at_row] = search_row(
            row, documents, weights, levels, widths, transforms, marks, found, scratch, out, passed
        )
