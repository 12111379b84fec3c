"""What beam search adds up: products of a document's features with the weights of clusters."""

import numpy as np

from treetop.kernels import helper
from treetop.kernels.lanes import (
    float_of,
    fma,
    lanes_at,
    lanes_of_words,
    prefetch,
    splat,
    store,
)
from treetop.kernels.words import SIXTEEN, WIDTH, number_at, value_at

# Rows with more clusters per beam entry than this are searched by bisection, others are scanned.
LONG_ROW = 24
# How many weights ahead to prefetch; of how many features ahead how many clusters of the row.
AHEAD, ROWS_AHEAD, CLUSTERS_AHEAD = 20, 3, np.uint64(64)
LINE = 64  # bytes that are prefetched together
ZERO, ONE = np.uint64(0), np.uint64(1)
CHILD = np.uint32(0x7FFF)
# A hit is one number, because a search writes many that it then drops: from bit 40 on the entry of the
# beam, below it where the weights are, plus what makes marks below 0 positive.
ENTRY, POSITIVE = np.int64(40), np.int64(1 << 31)
WHERE = np.int64((1 << 40) - 1)


@helper
def hit_of(entry, mark, base):
    """A hit: `mark` is where the weights are from `base` on, or itself a weight (see `words`)."""
    where = mark + (np.int64(0) if mark < 0 else base)
    return (np.int64(entry) << ENTRY) + (where + POSITIVE)


@helper
def parts_of_hit(hit):
    """The entry of the beam, and where the weights are: the inverse of `hit_of`."""
    return hit >> ENTRY, (hit & WHERE) - POSITIVE


@helper
def seek(rows, start, end, cluster):
    """First place in [start, end) whose cluster is not below `cluster`, quick where it is near."""
    step = ONE
    while start + step < end and rows[start + step, 0] < cluster:
        start += step
        step += step
    end = min(end, start + step)
    while start < end:
        middle = (start + end) >> ONE
        if rows[middle, 0] < cluster:
            start = middle + ONE
        else:
            end = middle
    return start


@helper
def find_weights(data, start, places, ends, bases, clusters, beam_of, last_cluster, rows, hits, hit_x):
    """For each of a document's features its weights in the clusters of the beam; returns how many.

    Fills `hits` and the values of their features, `hit_x`. A feature's weights begin at its `bases`.
    `places` is where each feature stands in its row; it moves behind the level's clusters, which end
    before `last_cluster`. `clusters` are those of the beam, ascending; `beam_of` is the reverse.
    """
    # Places are unsigned: numba then leaves out its handling of negative indices.
    found = ZERO
    for number in range(places.size):
        if number + ROWS_AHEAD < places.size:
            ahead = places[number + ROWS_AHEAD]
            last = min(ends[number + ROWS_AHEAD], ahead + CLUSTERS_AHEAD)
            for at in range(ahead, last, np.uint64(LINE // 8)):
                prefetch(rows, at)
        place, end = places[number], ends[number]
        x, base = data[start + number], bases[number]
        if end - place > np.uint64(LONG_ROW * clusters.size):
            for entry in range(clusters.size):
                place = seek(rows, place, end, clusters[entry])
                if place < end and rows[place, 0] == clusters[entry]:
                    hits[found] = hit_of(entry, np.int64(rows[place, 1]), base)
                    hit_x[found] = x
                    found += ONE
            place = seek(rows, place, end, last_cluster)
        else:
            # No branch predictor can guess which clusters are in the beam: count instead of branching.
            while place < end and rows[place, 0] < last_cluster:
                entry = beam_of[np.uint64(rows[place, 0])]
                hits[found] = hit_of(entry, np.int64(rows[place, 1]), base)
                hit_x[found] = x
                found += np.uint64(entry >= 0)
                place += ONE
        places[number] = place
    return found


@helper
def add_full(at, x, target, count, value_words, cells, raw):
    """raw[target:] += x·w for `count` children whose full vectors begin at ``cells[at]``."""
    end = target + count
    if value_words == 1:
        while target < end:
            own = lanes_of_words(cells, at, 1, WIDTH)
            store(raw, target, fma(own, x, lanes_at(raw, target, WIDTH)))
            target += np.uint64(WIDTH)
            at += np.uint64(WIDTH)
    else:
        while target < end:
            own = lanes_of_words(cells, at, 2, WIDTH)
            store(raw, target, fma(own, x, lanes_at(raw, target, WIDTH)))
            target += np.uint64(WIDTH)
            at += np.uint64(2 * WIDTH)


@helper
def add_list(at, x, target, form, cells, raw):
    """raw[target + child] += x·w for the list that begins at ``cells[at]``."""
    child_words, value_words = np.uint64(form[0]), np.uint64(form[1])
    step = child_words + value_words
    end = at + child_words + step * number_at(cells, at, child_words)
    at += child_words
    while at < end:
        child = number_at(cells, at, child_words)
        raw[target + child] += x * value_at(cells, at + child_words, value_words)
        at += step


@helper
def ask_for(hit, beam, value_words, cells):
    """Prefetch the weights of a hit: the lines of full vectors that are read, the first of a list."""
    entry, at = parts_of_hit(hit)
    # Marks below 0 lead nowhere; asking for the first cell is cheaper than not asking.
    prefetch(cells, max(at, np.int64(0)) >> 1)
    if at > 0 and at & 1:
        first, last = beam.lows[entry] * value_words, beam.counts[entry] * value_words
        for word in range(first + LINE // 2, last, LINE // 2):
            prefetch(cells, (at >> 1) + word)


@helper
def add_weights(found, beam, stride, weights):
    """raw[entry·stride + child] += x·w for every hit."""
    cells, form, raw = weights.cells, weights.form, beam.raw
    for hit in range(found):
        if hit + AHEAD < found:
            ask_for(beam.hits[hit + AHEAD], beam, form[1], cells)
        entry, at = parts_of_hit(beam.hits[hit])
        x, target = beam.hit_x[hit], np.uint64(entry) * np.uint64(stride)
        if at < 0:
            bits = np.uint32(at)
            child = np.uint64((bits >> SIXTEEN) & CHILD)
            raw[target + child] += x * float_of(bits << SIXTEEN)
        elif at & 1:
            low = np.uint64(beam.lows[entry])
            count = np.uint64(beam.counts[entry]) - low
            words = np.uint64(at >> 1) + low * np.uint64(form[1])
            add_full(words, x, target + low, count, form[1], cells, raw)
        else:
            add_list(np.uint64(at >> 1), x, target, form, cells, raw)


@helper
def dense_products(dense, row, weights, at, count, raw, target):
    """raw[target:] + the dense half of Wᵀx for 16 children of a cluster of `count`, from `at` on.

    Two sums, so that one addition need not wait for the last.
    """
    even, odd = lanes_at(raw, target, WIDTH), splat(np.float32(0.0), WIDTH)
    column, step = ZERO, np.uint64(count)
    last = np.uint64(dense.shape[1])
    while column + ONE < last:
        even = fma(lanes_at(weights, at, WIDTH), dense[row, column], even)
        odd = fma(lanes_at(weights, at + step, WIDTH), dense[row, column + ONE], odd)
        at += step + step
        column += ONE + ONE
    if column < last:
        even = fma(lanes_at(weights, at, WIDTH), dense[row, column], even)
    return even + odd


@helper
def score_dense(dense, row, first, count, dense_weights, raw, offset):
    """Add the dense half of Wᵀx for the children of one cluster, which begin at node `first`."""
    at = np.uint64(first * dense.shape[1])
    target, size, width = np.uint64(offset), np.uint64(count), np.uint64(WIDTH)
    if size < width:
        for column in range(dense.shape[1]):
            x = dense[row, column]
            for child in range(size):
                raw[target + child] += x * dense_weights[at + child]
            at += size
        return
    # The last vector overlaps the one before: it is computed first and stored last.
    rest = size - width
    tail = dense_products(dense, row, dense_weights, at + rest, count, raw, target + rest)
    child = ZERO
    while child < rest:
        done = dense_products(dense, row, dense_weights, at + child, count, raw, target + child)
        store(raw, target + child, done)
        child += width
    store(raw, target + rest, tail)


@helper
def score_some_dense(dense, row, first, count, low, high, dense_weights, raw, offset):
    """Like `score_dense`, but complete only for the children from `low` to `high` of `count`."""
    if count < WIDTH or high - low > WIDTH:
        score_dense(dense, row, first, count, dense_weights, raw, offset)
        return
    start = min(low, count - WIDTH)
    target, at = np.uint64(offset + start), np.uint64(first * dense.shape[1] + start)
    store(raw, target, dense_products(dense, row, dense_weights, at, count, raw, target))
