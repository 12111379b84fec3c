"""From UTF-8 bytes to token ids.

The corpus is one buffer of bytes. A token is hashed to 64 bits while its characters are read, and
a hash table gives its id. Two different words share a hash once in some 10^19 pairs, so the hash
stands for the word.
"""

import numpy as np

from treetop.kernels import PREDICTION, array, const, helper, i4, i8, kernel, maker, table, u1, u8, void
from treetop.kernels.arrays import full
from treetop.kernels.signatures import Tuple

SEPARATOR, LETTER, MARK, SPACE = 0, 1, 2, 3
WORDS, CHARACTERS = 0, 1
UNKNOWN, STOP = -1, -2

ZERO, ONE, SIX = np.uint64(0), np.uint64(1), np.uint64(6)
OTHER = 1
SEED = np.uint64(0xCBF29CE484222325)
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


@helper
def mix(value):
    """Spread all bits of a 64-bit value over all others; never 0, which marks an empty slot."""
    value ^= value >> np.uint64(32)
    value *= MULTIPLIER
    value ^= value >> np.uint64(29)
    return value if value != np.uint64(0) else np.uint64(1)


@helper
def find(keys, key):
    """Slot of `key` in an open-addressing table, or the empty slot where it belongs."""
    mask = np.uint64(keys.size - 1)
    slot = key & mask
    while keys[slot] != np.uint64(0) and keys[slot] != key:
        slot = (slot + np.uint64(1)) & mask
    return slot


@helper
def decode(buffer, position, end):
    """Code point at `position` of valid UTF-8, and the position after it."""
    byte = np.uint64(buffer[position])
    if byte < 0x80:
        return byte, position + ONE
    length = np.uint64(2 if byte < 0xE0 else (3 if byte < 0xF0 else 4))
    point = byte & (np.uint64(0x7F) >> length)
    stop = min(position + length, end)
    position += ONE
    while position < stop:
        point = (point << SIX) | (np.uint64(buffer[position]) & np.uint64(0x3F))
        position += ONE
    return point, stop


@helper
def fold(point, lower):
    """The character that stands for `point` when case does not matter."""
    return np.uint64(lower[point]) if point < np.uint64(lower.size) else np.uint64(point)


@maker
def byte_letters(classes, lower):
    """For each byte its lower case if an ASCII letter or digit, OTHER if not ASCII, else 0."""
    letters = full(256, OTHER, np.uint8)
    for byte in range(128):
        letters[byte] = fold(byte, lower) if classes[byte] == LETTER else 0
    return letters


@helper
def next_word(buffer, position, end, letters, classes, lower):
    """Hash of the word at or after `position`, its start, its end and its number of characters.

    A word is a run of letters and digits, with the marks (accents, vowel signs) that follow them.
    The number of characters is 0 when there is none before the next character that is not ASCII.
    """
    # Two tight loops for ASCII, of which nearly all text is made. Positions are unsigned: numba
    # then leaves out its handling of negative indices.
    while position < end and letters[buffer[position]] == 0:
        position += ONE
    value = SEED
    length = ZERO
    start = position
    while True:
        run = position
        while position < end:
            letter = letters[buffer[position]]
            if letter <= OTHER:
                break
            value = (value ^ np.uint64(letter)) * MULTIPLIER
            position += ONE
        length += position - run
        if position >= end or letters[buffer[position]] == 0:
            break
        point, after = decode(buffer, position, end)
        kind = classes[point]
        if kind != LETTER and (kind != MARK or length == ZERO):
            position = after if length == ZERO else position
            break
        value = (value ^ np.uint64(fold(point, lower))) * MULTIPLIER
        length += ONE
        position = after
    return mix(value), start, position, length


@helper
def next_character(buffer, position, end, classes, lower):
    """Hash of the character at `position` and the position after it; a run of space is one space."""
    point, position = decode(buffer, position, end)
    if classes[point] == SPACE:
        while position < end:
            following, after = decode(buffer, position, end)
            if classes[following] != SPACE:
                break
            point = np.uint64(32)
            position = after
    return mix((SEED ^ np.uint64(fold(point, lower))) * MULTIPLIER), position


text_types = (const(u1), const(i8), i8, i8)
setting_types = (const(u1), const(i4), i8, i8)
result_types = (array(i4), array(i8), array(i8), array(u8), array(i8), array(i4))


@kernel(Tuple((i8, i8))(*text_types, *setting_types, *table, *result_types), use=PREDICTION)
def tokenize(
    buffer,
    offsets,
    first,
    last,
    classes,
    lower,
    unit,
    shortest,
    keys,
    values,
    out_ids,
    out_counts,
    new_position,
    new_hash,
    new_start,
    new_length,
):
    """Token ids of documents `first` to `last`, from 0 on; returns how many, and how many unknown.

    Words of fewer than `shortest` characters and the stop words of the table are skipped.
    An unknown token is -1 in `out_ids` and described in the four arrays `new_...`.
    """
    letters = byte_letters(classes, lower)
    count = 0
    unknown = 0
    for document in range(first, last):
        before = count
        position, end = np.uint64(offsets[document]), np.uint64(offsets[document + 1])
        while position < end:
            if unit == WORDS:
                value, start, position, length = next_word(
                    buffer, position, end, letters, classes, lower
                )
                if length == ZERO or length < np.uint64(shortest):
                    continue
            else:
                start = position
                value, position = next_character(buffer, position, end, classes, lower)
            slot = find(keys, value)
            token = values[slot] if keys[slot] == value else np.int32(UNKNOWN)
            if token == STOP:
                continue
            if token == UNKNOWN:
                new_position[unknown] = count
                new_hash[unknown] = value
                new_start[unknown] = start
                new_length[unknown] = position - start
                unknown += 1
            out_ids[count] = token
            count += 1
        out_counts[document - first] = count - before
    return count, unknown


token_types = (const(u1), array(i4), const(i8), const(u8), const(i8), const(i4))


@kernel(i8(*token_types, array(u8), array(i4), i8, array(u1), array(i8)))
def intern(buffer, ids, positions, hashes, starts, lengths, keys, values, known, names, name_ends):
    """Give unknown tokens an id, in the order of their first occurrence; returns the new `known`.

    `name_ends[known - 1]` is where the last known name ends in `names`. Returns ``-1 - known`` when
    the table or the space for names is full: enlarge, and call again.
    """
    for at in range(positions.size):
        slot = find(keys, hashes[at])
        if keys[slot] == np.uint64(0):
            start, length = starts[at], lengths[at]
            name_start = name_ends[known - 1] if known else 0
            full = 2 * known >= keys.size or known >= name_ends.size
            if full or name_start + length > names.size:
                return -1 - known
            keys[slot] = hashes[at]
            values[slot] = known
            for offset in range(length):
                names[name_start + offset] = buffer[start + offset]
            name_ends[known] = name_start + length
            known += 1
        ids[positions[at]] = values[slot]
    return known


@kernel(void(const(u8), const(i4), array(u8), array(i4)))
def fill_table(hashes, ids, keys, values):
    """Put ``hashes[i] -> ids[i]`` into an empty table; hash 0 is skipped."""
    for position in range(hashes.size):
        if hashes[position] != np.uint64(0):
            slot = find(keys, hashes[position])
            keys[slot] = hashes[position]
            values[slot] = ids[position]
