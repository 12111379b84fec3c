"""Sparse text, ``l1,l2 f:v f:v …`` a line, from bytes to arrays."""

import math

import numpy as np

from treetop.kernels import array, const, f4, helper, i4, i8, kernel, u1

SHAPE, NUMBER, RANGE = 1, 2, 3
LARGEST = 2**31 - 1
NEWLINE, SPACE, TAB, RETURN, COMMA, COLON = 10, 32, 9, 13, 44, 58
POINT, PLUS, MINUS, ZERO = 46, 43, 45, 48
# A double holds integers up to here and powers of ten up to 22 exactly: then one division or product
# is rounded once, as `float` rounds.
DIGITS = 18


@helper
def skip_blanks(text, at):
    """The next byte that is not a space, tab or carriage return."""
    while text[at] == SPACE or text[at] == TAB or text[at] == RETURN:
        at += 1
    return at


@helper
def read_integer(text, at):
    """A number without a sign, and the place after it; -1 if there is none or it is too large."""
    value = np.int64(-1)
    while text[at] >= ZERO and text[at] <= ZERO + 9:
        value = max(value, np.int64(0)) * 10 + (np.int64(text[at]) - ZERO)
        if value > LARGEST:
            return np.int64(-2), at
        at += 1
    return value, at


@helper
def read_number(text, at):
    """A decimal number, and the place after it; NaN if there is none."""
    negative = text[at] == MINUS
    if text[at] == MINUS or text[at] == PLUS:
        at += 1
    mantissa, scale, digits, seen = np.int64(0), np.int64(0), np.int64(0), False
    fraction = False
    while (text[at] >= ZERO and text[at] <= ZERO + 9) or (text[at] == POINT and not fraction):
        if text[at] == POINT:
            fraction = True
        else:
            seen = True
            if digits < DIGITS:
                mantissa = mantissa * 10 + (np.int64(text[at]) - ZERO)
                digits += mantissa > 0
                scale -= fraction
            else:
                scale += not fraction
        at += 1
    if seen and (text[at] | 32) == 101:  # e or E
        down = text[at + 1] == MINUS
        power, at = read_integer(text, at + 1 + (down or text[at + 1] == PLUS))
        if power < 0:
            return math.nan, at
        scale += -power if down else power
    if not seen:
        return math.nan, at
    value = float(mantissa)
    if scale < 0:
        value /= 10.0**-scale
    elif scale > 0:
        value *= 10.0**scale
    return -value if negative else value, at


@kernel(i8(const(u1), u1, array(i4), array(i8), array(i4), array(f4), array(i8)), use=None)
def parse(text, with_labels, labels, label_ends, features, values, feature_ends):
    """Fill the arrays from whole lines; the last byte is a line feed.

    `label_ends[n]` and `feature_ends[n]` get the number of entries up to and with line n. Returns -1,
    or 4 · line + what is wrong with it.
    """
    at, line, label_count, feature_count = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    while at < text.size:
        number = np.int64(-1)  # a feature read where labels were expected
        if with_labels and text[at] != SPACE:
            while text[at] >= ZERO and text[at] <= ZERO + 9:
                number, at = read_integer(text, at)
                if number < 0:
                    return 4 * line + RANGE
                if text[at] == COLON:
                    break
                labels[label_count] = number
                label_count += 1
                number = -1
                if text[at] == COMMA:
                    at += 1
        while True:
            if number < 0:
                at = skip_blanks(text, at)
                if text[at] == NEWLINE:
                    break
                number, at = read_integer(text, at)
                if number < 0:
                    return 4 * line + (RANGE if number == -2 else SHAPE)
            if text[at] != COLON:
                return 4 * line + SHAPE
            value, at = read_number(text, at + 1)
            if not math.isfinite(np.float32(value)) or text[at] > SPACE:
                return 4 * line + NUMBER
            features[feature_count], values[feature_count] = number, value
            feature_count += 1
            number = -1
        label_ends[line], feature_ends[line] = label_count, feature_count
        at += 1
        line += 1
    return -1
