"""Dual coordinate descent for the labels of one cluster at once.

All labels of a cluster are trained on the same documents. Their weights lie side by side, so that
one feature of one document is read once for up to 16 labels: a dot product and an update are a
chain of vector loads and fused multiply-adds (see `lanes`).

A part of the documents may be held out: once a label is trained on all, what they contribute is taken
out again and the others adapt, which takes a fraction of the time of training without them from
nothing. The others count for those held out as well: with less to fit, the same λ would make smaller
weights, so lower scores. The weights of both are kept; those trained on all are the same as without a
held-out part.

For a label the problem is  min ½‖w‖² + Σ_i c_i loss(y_i w·x_i),  and its dual has one variable per
document. `beta` holds y_i times that variable, so that w = Σ_i beta_i x_i whatever the loss.
"""

import numpy as np

from treetop.kernels import (
    array,
    boolean,
    const,
    csr,
    f4,
    f8,
    helper,
    hybrid,
    i4,
    i8,
    kernel,
    maker,
    u1,
)
from treetop.kernels.arrays import empty, full
from treetop.kernels.bisection import next_random
from treetop.kernels.clusters import ClusterDocuments, gathered, targets_of
from treetop.kernels.lanes import WIDTHS, fma, lanes_at, prefetch, splat, store
from treetop.kernels.losses import LOGISTIC, SQUARED_HINGE, hinge_step, logistic_step

# A document whose step is below this share of the tolerance is left as it is.
NEGLIGIBLE = 0.1
ROWS_BETWEEN_LOOKS = 4096
# More weights than this do not fit into a core's cache: they are asked for a document ahead, and the
# document's features, of which a cache line holds 16, a few documents ahead.
CACHED, FEATURES_AHEAD, LINE = 1 << 17, 4, 16
# The length of a tuple is part of its type: a function compiled for it knows the vectors' width.
FOUR, EIGHT, SIXTEEN = ((np.uint8(0),) * width for width in WIDTHS)


@helper
def score_lanes(like, weights, indices, data, start, end, dense, dense_row, columns, bias, out):
    """Out = Wᵀx of one document: four sums, so that one addition need not wait for the last."""
    first = splat(np.float32(0.0), like)
    second = third = fourth = first
    at = start
    while at + 4 <= end:
        first = fma(lanes_at(weights, indices[at], like), data[at], first)
        second = fma(lanes_at(weights, indices[at + 1], like), data[at + 1], second)
        third = fma(lanes_at(weights, indices[at + 2], like), data[at + 2], third)
        fourth = fma(lanes_at(weights, indices[at + 3], like), data[at + 3], fourth)
        at += 4
    while at < end:
        first = fma(lanes_at(weights, indices[at], like), data[at], first)
        at += 1
    column = 0
    while column + 4 <= dense.shape[1]:
        row = columns + column
        first = fma(lanes_at(weights, row, like), dense[dense_row, column], first)
        second = fma(lanes_at(weights, row + 1, like), dense[dense_row, column + 1], second)
        third = fma(lanes_at(weights, row + 2, like), dense[dense_row, column + 2], third)
        fourth = fma(lanes_at(weights, row + 3, like), dense[dense_row, column + 3], fourth)
        column += 4
    while column < dense.shape[1]:
        second = fma(lanes_at(weights, columns + column, like), dense[dense_row, column], second)
        column += 1
    first = fma(lanes_at(weights, columns + dense.shape[1], like), bias, first)
    store(out, 0, (first + second) + (third + fourth))


@helper
def update_lanes(like, weights, indices, data, start, end, dense, dense_row, columns, bias, delta):
    """W += x deltaᵀ."""
    step = lanes_at(delta, 0, like)
    for at in range(start, end):
        store(weights, indices[at], fma(step, data[at], lanes_at(weights, indices[at], like)))
    for column in range(dense.shape[1]):
        row = columns + column
        store(weights, row, fma(step, dense[dense_row, column], lanes_at(weights, row, like)))
    row = columns + dense.shape[1]
    store(weights, row, fma(step, bias, lanes_at(weights, row, like)))


@helper
def span_of(documents, row):
    """Where the features of a document of the cluster begin and end."""
    source = row if documents.own else documents.rows[row]
    return documents.indptr[source], documents.indptr[source + 1]


@helper
def prepare(documents, order, at, weights):
    """Ask for what documents after `order[at]` need: weights of the next, and features of another.

    The weights of a cluster with many features do not fit into a core's cache.
    """
    if at + FEATURES_AHEAD < order.size:
        start, end = span_of(documents, order[at + FEATURES_AHEAD])
        for place in range(start, end, LINE):
            prefetch(documents.indices, place)
            prefetch(documents.data, place)
    if at + 1 < order.size:
        start, end = span_of(documents, order[at + 1])
        for place in range(start, end):
            prefetch(weights, documents.indices[place])


@helper
def score(width, *document):
    """Call `score_lanes` with vectors of this width. Only such innermost loops are compiled thrice."""
    if width == 16:
        score_lanes(SIXTEEN, *document)
    elif width == 8:
        score_lanes(EIGHT, *document)
    else:
        score_lanes(FOUR, *document)


@helper
def update(width, *document):
    """Call `update_lanes` with vectors of this width."""
    if width == 16:
        update_lanes(SIXTEEN, *document)
    elif width == 8:
        update_lanes(EIGHT, *document)
    else:
        update_lanes(FOUR, *document)


@helper
def step_of_hinge(width, *document):
    """Call `hinge_step` with vectors of this width."""
    if width == 16:
        return hinge_step(SIXTEEN, *document)
    if width == 8:
        return hinge_step(EIGHT, *document)
    return hinge_step(FOUR, *document)


@helper
def one_pass(
    width, documents, targets, order, settings, weights, beta, scores, delta, active_first, cancel
):
    """Visit every document once; returns the largest gradient met, and how many documents had steps.

    With `active_first`, these are the first ones of `order` afterwards.
    """
    columns, bias, loss, tolerance = settings
    largest = np.float32(0.0)
    many, active = weights.size > CACHED, 0
    for at in range(order.size):
        if at % ROWS_BETWEEN_LOOKS == 0 and cancel[0]:
            break
        if many:
            prepare(documents, order, at, weights)
        row = order[at]
        document = documents.rows[row]
        start, end = span_of(documents, row)
        indices, data, dense = documents.indices, documents.data, documents.dense
        score(width, weights, indices, data, start, end, dense, document, columns, bias, scores)
        norm = documents.norms[document] + bias * bias
        slot, weight = targets.slots[row], documents.factor * documents.weights[document]
        signs, costs = targets.signs, targets.costs
        if loss == LOGISTIC:
            step = logistic_step(scores, beta, row, signs, costs, slot, weight, norm, delta)
        else:
            squared = loss == SQUARED_HINGE
            step = step_of_hinge(
                width, squared, scores, beta, row, signs, costs, slot, weight, norm, delta
            )
        if step > NEGLIGIBLE * tolerance:
            for lane in range(width):
                beta[row, lane] += delta[0, lane]
            update(width, weights, indices, data, start, end, dense, document, columns, bias, delta)
            largest = max(largest, step)
            if active_first:
                order[at], order[active] = order[active], order[at]
            active += 1
    return largest, active


@helper
def shuffle(order, state):
    """Random order; returns the next state."""
    for at in range(order.size - 1, 0, -1):
        state, other = next_random(state, at + 1)
        order[at], order[other] = order[other], order[at]
    return state


@maker
def descend(width, documents, targets, settings, passes, state, weights, beta, cancel):
    """Passes over the documents in random order until no label's step is above the tolerance.

    Returns the next state of the random numbers.
    """
    rows, tolerance = documents.rows, settings[3]
    scores, delta = full((1, width), 0.0, np.float32), full((1, width), 0.0, np.float32)
    order = empty(rows.size, np.int64)
    for at in range(rows.size):
        order[at] = at
    for _ in range(passes):
        state = shuffle(order, state)
        largest, _ = one_pass(
            width, documents, targets, order, settings, weights, beta, scores, delta, False, cancel
        )
        if largest < tolerance or cancel[0]:
            break
    return state


@maker
def adapt(width, documents, targets, settings, passes, state, order, weights, beta, cancel):
    """Like `descend` from weights that are almost right: later passes visit only those with steps."""
    tolerance = settings[3]
    scores, delta = full((1, width), 0.0, np.float32), full((1, width), 0.0, np.float32)
    active = order.size
    for _ in range(passes):
        state = shuffle(order[:active], state)
        largest, active = one_pass(
            width,
            documents,
            targets,
            order[:active],
            settings,
            weights,
            beta,
            scores,
            delta,
            True,
            cancel,
        )
        if largest < tolerance or cancel[0]:
            break


@helper
def factor_without(rows, held):
    """What the weights of documents are multiplied by so that they count for those held out as well.

    But for one: a new document is not among those that the other model was trained on either.
    """
    count = 0
    for at in range(rows.size):
        count += held[rows[at]]
    if 0 < count < rows.size:
        return np.float32((rows.size - 1) / (rows.size - count))
    return np.float32(1.0)


@maker
def taken_out(width, documents, settings, held, weights, beta):
    """Take the held-out documents out of the weights and the dual variables.

    Returns the places of the others that have dual variables.
    """
    columns, bias, rows = settings[0], settings[1], documents.rows
    delta, order, count = full((1, width), 0.0, np.float32), empty(rows.size, np.int64), 0
    for row in range(rows.size):
        largest = np.float32(0.0)
        for lane in range(width):
            delta[0, lane] = -beta[row, lane]
            largest = max(largest, abs(beta[row, lane]))
        document = rows[row]
        if largest > 0.0 and held[document]:
            start, end = span_of(documents, row)
            indices, data, dense = documents.indices, documents.data, documents.dense
            update(width, weights, indices, data, start, end, dense, document, columns, bias, delta)
        elif largest > 0.0:
            order[count] = row
            count += 1
    return order[:count]


@maker
def train_without(
    width, documents, targets, settings, passes, state, held, weights, beta, fold_weights, cancel
):
    """Weights that do not know the held-out documents, in the first block of `fold_weights`.

    What these documents contribute to trained weights is taken out, and the others that contribute
    adapt; those that do not contribute hardly ever would.
    """
    factor = documents.factor
    for feature in range(weights.shape[0]):
        for lane in range(width):
            fold_weights[0, feature, lane] = factor * weights[feature, lane]
    for row in range(len(beta)):
        for lane in range(width):
            beta[row, lane] *= factor
    others = taken_out(width, documents, settings, held, fold_weights[0], beta)
    adapt(width, documents, targets, settings, passes, state, others, fold_weights[0], beta, cancel)


@helper
def forget_features(features, columns, wanted, weights):
    """Set the weights of features that are not `wanted` to 0, unless that is empty."""
    for feature in range(columns if wanted.size else 0):
        if not wanted[features[feature]]:
            for block in range(len(weights)):
                for lane in range(weights.shape[2]):
                    weights[block, feature, lane] = 0.0


@kernel(
    i8(
        i8,
        *hybrid,
        const(f4),
        const(f4),
        const(i8),
        boolean,
        i8,
        i8,
        *csr,
        f4,
        f4,
        i8,
        i8,
        f8,
        i8,
        const(u1),
        const(u1),
        array(i4),
        array(i4),
        array(i4),
        array(f4),
        array(u1),
    )
)
def train_cluster(
    width,
    indptr,
    indices,
    data,
    dense,
    norms,
    weights_of,
    rows,
    copy,
    first_child,
    last_child,
    positive_ptr,
    positive_rows,
    positive_costs,
    negative_cost,
    bias,
    loss,
    passes,
    tolerance,
    seed,
    held,
    wanted,
    numbers,
    row_of,
    features,
    room,
    cancel,
):
    """Weights of the children `first_child` to `last_child`, trained on documents `rows`.

    `width` labels are trained at once: 4, 8 or 16. `copy`: bring the documents together and number
    their features anew, worthwhile when they are few of all documents. `weights_of` are the
    documents' weights. `held` marks those that are held out with a 1; it is empty if none are. `wanted`
    marks the features whose weights without these documents matter; empty: all do.

    Returns how many sparse features the documents have, and fills in `features`, which these are, and
    the beginning of `room`: blocks of `width` labels, for each the weights of these features, of the
    dense half and of the bias, for all labels of the block. If documents are held out, the same follows
    as it is without them.
    """
    for at in range(rows.size):
        row_of[rows[at]] = at
    if copy:
        columns, own_ptr, own_indices, own_data = gathered(
            indptr, indices, data, rows, numbers, features
        )
    else:
        columns = numbers.size
        for feature in range(columns):
            features[feature] = feature
        own_ptr, own_indices, own_data = indptr, indices, data

    once, factor = np.float32(1.0), factor_without(rows, held) if held.size else np.float32(1.0)
    documents = ClusterDocuments(
        own_ptr, own_indices, own_data, copy, rows, dense, norms, weights_of, once
    )
    others = ClusterDocuments(
        own_ptr, own_indices, own_data, copy, rows, dense, norms, weights_of, factor
    )
    settings = (columns, bias, loss, tolerance)
    blocks = (last_child - first_child + width - 1) // width
    rank = columns + dense.shape[1] + 1
    size, folds = blocks * rank * width, blocks if held.size else 0
    weights = room[:size].reshape((blocks, rank, width))
    fold_weights = room[size : size + folds * rank * width].reshape((folds, rank, width))
    for at in range(weights.size):
        room[at] = 0.0
    for block in range(blocks):
        first = first_child + block * width
        children = (first, min(first + width, last_child))
        targets = targets_of(
            children, width, rows, positive_ptr, positive_rows, positive_costs, negative_cost, row_of
        )
        beta = full((rows.size, width), 0.0, np.float32)
        state = np.uint64(seed + first)
        state = descend(
            width, documents, targets, settings, passes, state, weights[block], beta, cancel
        )
        if folds:
            train_without(
                width,
                others,
                targets,
                settings,
                passes,
                state,
                held,
                weights[block],
                beta,
                fold_weights[block : block + 1],
                cancel,
            )
    if folds:
        forget_features(features, columns, wanted, fold_weights)
    return columns
