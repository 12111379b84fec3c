"""Weights as 16-bit words: how the weights of a feature for the children of a cluster are stored.

A mark says it. Below 0 it is a single weight: the child in bits 16 to 30, the upper word of the value
in the others. Otherwise it is 2·n for a list of n words, or 2·n + 1 for n words of full vectors,
elsewhere. A list begins with its length; then come the child and the value of each weight. Full
vectors have a value for every child, in vectors of WIDTH, and are used where many children have a
weight.

A value is a float32 of two words, or only the upper one, a bfloat16. The number of a child has one
word, or two if a cluster of the model has too many children.
"""

import numpy as np

from treetop.kernels import array, const, helper, i4, i8, kernel, u2, u4, void
from treetop.kernels.lanes import float_of

WIDTH = 16  # of full vectors
# Weights that fill more than this share of a cluster are kept as full vectors.
DENSE = 0.4
# Children from this number on do not fit into a mark.
FAR = 1 << 15
SIXTEEN = np.uint32(16)
LOWER, SIGN = np.uint32(0xFFFF), np.uint32(0x8000)
EXPONENT, LARGEST = np.uint32(0x7F80), np.uint32(0x7F7F)


@helper
def upper_word(bits):
    """The upper word of a float32, rounded to the nearest, ties to even; finite values stay finite."""
    word = (bits + np.uint32(0x7FFF) + ((bits >> SIXTEEN) & np.uint32(1))) >> SIXTEEN
    if (word & EXPONENT) == EXPONENT:
        word = (word & SIGN) | LARGEST
    return np.uint32(word)


@helper
def put_value(words, at, bits, value_words):
    """Write a value; returns the place behind it."""
    if value_words == 1:
        words[at] = upper_word(bits)
        return at + 1
    words[at] = bits & LOWER
    words[at + 1] = bits >> SIXTEEN
    return at + 2


@helper
def put_number(words, at, number, child_words):
    """Write the number of a child or the length of a list; returns the place behind it."""
    words[at] = number & 0xFFFF
    if child_words == 1:
        return at + 1
    words[at + 1] = number >> 16
    return at + 2


@helper
def number_at(words, at, child_words):
    """The number of a child or the length of a list."""
    if child_words == 1:
        return np.uint64(words[at])
    return np.uint64(words[at]) | np.uint64(words[at + np.uint64(1)]) << np.uint64(16)


@helper
def value_at(words, at, value_words):
    """A value."""
    if value_words == 1:
        return float_of(np.uint32(words[at]) << SIXTEEN)
    return float_of(np.uint32(words[at]) | np.uint32(words[at + np.uint64(1)]) << SIXTEEN)


@helper
def full_words(count, value_words):
    """How many words the full vectors of `count` children have."""
    return value_words * ((count + WIDTH - 1) // WIDTH * WIDTH)


@helper
def mark_of(size, child, bits, count, child_words, value_words):
    """The mark of `size` weights in a cluster of `count` children; `child` and `bits` are the first."""
    if size > DENSE * count:
        return 2 * full_words(count, value_words) + 1
    if size == 1 and value_words == 1 and child < FAR:
        return np.int64(child << 16 | np.int64(upper_word(bits))) - (np.int64(1) << 31)
    return 2 * (child_words + size * (child_words + value_words))


@kernel(i8(const(i8), const(i8), const(i4), const(u4), i8, i8, i8, array(i4, 2)))
def mark_features(starts, ends, children, values, count, child_words, value_words, entries):
    """Fill in the marks of a cluster, ``entries[:, 1]``; returns how many words its weights have.

    `starts` and `ends` are where the weights of each feature are in `children` and `values`.
    """
    total = np.int64(0)
    for row in range(ends.size):
        start = starts[row]
        size, child, bits = ends[row] - start, children[start], values[start]
        mark = mark_of(size, child, bits, count, child_words, value_words)
        entries[row, 1] = mark
        if mark >= 0:
            total += mark >> 1
    return total


@kernel(void(const(i8), const(i8), const(i4), const(u4), i8, i8, const(i4, 2), array(u2)))
def write_words(starts, ends, children, values, child_words, value_words, entries, words):
    """Write the weights of a cluster one after the other; `words` is zero."""
    at = np.int64(0)
    for row in range(ends.size):
        start, end, mark = starts[row], ends[row], np.int64(entries[row, 1])
        if mark >= 0 and mark & 1:
            for source in range(start, end):
                put_value(words, at + value_words * children[source], values[source], value_words)
        elif mark >= 0:
            place = put_number(words, at, end - start, child_words)
            for source in range(start, end):
                place = put_number(words, place, children[source], child_words)
                place = put_value(words, place, values[source], value_words)
        if mark >= 0:
            at += mark >> 1
