"""From token ids to n-grams.

An n-gram is a pair: the (n-1)-gram it begins with, and its last token. It can be in `min_df`
documents only if the shorter one is, so each length looks only at what the one before kept.
"""

import numpy as np

from treetop.kernels import PREDICTION, array, const, f4, f8, helper, i4, i8, kernel, table, u8, void
from treetop.kernels.arrays import empty
from treetop.kernels.lanes import prefetch
from treetop.kernels.text import find, mix


@helper
def pair_key(prefix, token):
    """Key of the n-gram made of the shorter n-gram `prefix` and `token`; injective but for mixing."""
    return mix(((np.uint64(prefix) << np.uint64(32)) | np.uint64(token)) + np.uint64(1))


@helper
def extend(keys, values, prefix, token):
    """Id of the n-gram `prefix` + `token`, or -1."""
    key = pair_key(prefix, token)
    slot = find(keys, key)
    return values[slot] if keys[slot] == key else np.int32(-1)


@kernel(void(const(i4), const(i8), array(i8), array(i8), array(i8), i8))
def count_tokens(ids, document_ends, last_seen, documents, occurrences, first_document):
    """Add each token's document frequency and occurrences; `last_seen` starts below any document."""
    position = 0
    for document in range(document_ends.size):
        stamp = first_document + document
        while position < document_ends[document]:
            token = ids[position]
            position += 1
            occurrences[token] += 1
            if last_seen[token] != stamp:
                last_seen[token] = stamp
                documents[token] += 1


@kernel(
    void(const(i4), const(i4), const(i4), const(i8), i8, i8, i8, i8, array(i8), array(i4), array(i4))
)
def scatter_pairs(
    prefixes, ids, lasts, document_ends, reach, low, high, first_document, cursor, tokens, documents
):
    """Sort (token, document) by prefix, for prefixes in [low, high).

    The token that lengthens the n-gram at a position is `reach` tokens further on.
    """
    position = 0
    for document in range(document_ends.size):
        end = document_ends[document]
        while position + reach < end:
            prefix = prefixes[position]
            if low <= prefix < high:
                token = lasts[ids[position + reach]]
                if token >= 0:
                    place = cursor[prefix - low]
                    cursor[prefix - low] = place + 1
                    tokens[place] = token
                    documents[place] = first_document + document
            position += 1
        position = end


@kernel(void(const(i4), const(i4), const(i4), const(i8), i8, array(i8)))
def count_pairs(prefixes, ids, lasts, document_ends, reach, counts):
    """Number of positions where each prefix can be extended: the sizes that `scatter_pairs` fills."""
    position = 0
    for document in range(document_ends.size):
        end = document_ends[document]
        while position + reach < end:
            prefix = prefixes[position]
            if prefix >= 0 and lasts[ids[position + reach]] >= 0:
                counts[prefix] += 1
            position += 1
        position = end


pair_types = (const(i8), const(i4), const(i4))
level_types = (array(i4), array(i4), array(i8), array(i8))


@kernel(i8(*pair_types, i8, i8, i8, array(i8), array(i8), array(i8), *level_types))
def frequent_pairs(
    ends,
    tokens,
    documents,
    low,
    least,
    fewest,
    last_seen,
    pair_documents,
    pair_occurrences,
    out_prefix,
    out_token,
    out_documents,
    out_occurrences,
):
    """Pairs in at least `least` documents that occur at least `fewest` times; returns how many.

    They are from what `scatter_pairs` sorted.
    The three arrays over tokens are scratch: `last_seen` starts at -1, the other two at 0.
    """
    found = 0
    start = 0
    distinct = empty(last_seen.size, np.int32)
    for group in range(ends.size):
        count = 0
        for place in range(start, ends[group]):
            token = tokens[place]
            if last_seen[token] < 0:
                distinct[count] = token
                count += 1
            if last_seen[token] != documents[place]:
                last_seen[token] = documents[place]
                pair_documents[token] += 1
            pair_occurrences[token] += 1
        for at in range(count):
            token = distinct[at]
            if pair_documents[token] >= least and pair_occurrences[token] >= fewest:
                out_prefix[found] = low + group
                out_token[found] = token
                out_documents[found] = pair_documents[token]
                out_occurrences[found] = pair_occurrences[token]
                found += 1
            last_seen[token] = -1
            pair_documents[token] = 0
            pair_occurrences[token] = 0
        start = ends[group]
    return found


@kernel(void(const(i4), const(i4), const(i4), array(u8), array(i4)))
def fill_pairs(prefixes, tokens, ids, keys, values):
    """Put ``(prefixes[i], tokens[i]) -> ids[i]`` into a table with room."""
    for position in range(ids.size):
        key = pair_key(prefixes[position], tokens[position])
        slot = find(keys, key)
        keys[slot] = key
        values[slot] = ids[position]


@kernel(void(const(i4), const(i4), const(i4), const(i8), i8, *table, array(i4)), use=PREDICTION)
def lengthen(prefixes, ids, lasts, document_ends, reach, keys, values, out):
    """At each position the id of the n-gram one token longer than the one in `prefixes`, or -1."""
    position = 0
    for document in range(document_ends.size):
        end = document_ends[document]
        while position < end:
            out[position] = -1
            if position + reach < end and prefixes[position] >= 0:
                token = lasts[ids[position + reach]]
                if token >= 0:
                    out[position] = extend(keys, values, prefixes[position], token)
            position += 1


@helper
def sort_small(values, count):
    """Insertion sort of the first `count` values."""
    for at in range(1, count):
        value = values[at]
        place = at
        while place > 0 and values[place - 1] > value:
            values[place] = values[place - 1]
            place -= 1
        values[place] = value


@helper
def sort_digits(values, count, limit, spare, histogram):
    """Radix sort, 11 bits at a time, of the first `count` values, all below `limit`."""
    shift = 0
    source, target = values, spare
    while limit >> shift:
        for digit in range(2048):
            histogram[digit] = 0
        for at in range(count):
            histogram[(source[at] >> shift) & 2047] += 1
        total = 0
        for digit in range(2048):
            size = histogram[digit]
            histogram[digit] = total
            total += size
        for at in range(count):
            digit = (source[at] >> shift) & 2047
            target[histogram[digit]] = source[at]
            histogram[digit] += 1
        source, target = target, source
        shift += 11
    if shift % 22:
        for at in range(count):
            values[at] = spare[at]


@kernel(
    i8(const(i4), const(i8), i8, i8, i8, const(i4), i8, *table, i8, array(i4), array(f4), array(i8)),
    use=PREDICTION,
)
def count_features(
    ids,
    document_ends,
    first,
    last,
    longest,
    feature_of,
    features,
    keys,
    values,
    start,
    out_features,
    out_counts,
    out_ends,
):
    """Features of documents `first` to `last` with their counts, ascending; returns how many.

    `ids` holds -1 for unknown tokens. N-grams have global ids: tokens first, then pairs and so on,
    and `feature_of` says which are features. `start` is where document `first` begins in `ids`.
    """
    most = 16
    position = start
    for document in range(first, last):
        most = max(most, document_ends[document] - position)
        position = document_ends[document]
    found = empty(most * longest, np.int32)
    spare = empty(most * longest, np.int32)
    histogram = empty(2048, np.int64)
    written = 0
    position = start
    for document in range(first, last):
        end = document_ends[document]
        if longest > 1:
            for at in range(position, end - 1):
                if ids[at] >= 0 and ids[at + 1] >= 0:
                    prefetch(keys, pair_key(ids[at], ids[at + 1]) & np.uint64(keys.size - 1))
        count = 0
        while position < end:
            gram = ids[position]
            reach = 1
            while gram >= 0:
                if feature_of[gram] >= 0:
                    found[count] = feature_of[gram]
                    count += 1
                if reach == longest or position + reach >= end or ids[position + reach] < 0:
                    break
                gram = extend(keys, values, gram, ids[position + reach])
                reach += 1
            position += 1
        if count < 96:
            sort_small(found, count)
        else:
            sort_digits(found, count, features, spare, histogram)
        at = 0
        while at < count:
            begin = at
            while at < count and found[at] == found[begin]:
                at += 1
            out_features[written] = found[begin]
            out_counts[written] = at - begin
            written += 1
        out_ends[document - first] = written
    return written


@kernel(void(const(i8), const(i4), array(f4), const(f8), i8), use=PREDICTION)
def weigh(row_ends, features, counts, idf, sublinear):
    """Turn counts into tf-idf in place and scale each row to length 1."""
    # Nearly all counts are small, and a logarithm costs more than all else here.
    logarithms = empty(256, np.float64)
    for count in range(logarithms.size):
        logarithms[count] = 1.0 + np.log(np.float64(count))
    start = 0
    for row in range(row_ends.size):
        squares = 0.0
        for at in range(start, row_ends[row]):
            frequency = np.float64(counts[at])
            if sublinear:
                small = frequency < 256.0
                frequency = logarithms[int(frequency)] if small else 1.0 + np.log(frequency)
            value = frequency * idf[features[at]]
            counts[at] = value
            squares += value * value
        if squares > 0.0:
            scale = 1.0 / np.sqrt(squares)
            for at in range(start, row_ends[row]):
                counts[at] *= scale
        start = row_ends[row]
