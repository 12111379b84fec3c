"""Reads fastText's binary model files: words, subwords and the vectors of both."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import IO

import numpy as np

from treetop.errors import TreetopError

WORD_TYPE = 0
FNV_OFFSET, FNV_PRIME = 2_166_136_261, 16_777_619


def read_fasttext(path: Path) -> tuple[list[str], np.ndarray]:
    """Words and vectors (float32). A word's vector is the mean of its own and its subwords' vectors."""
    try:
        with path.open("rb") as file:
            return parse_model(file)
    except (struct.error, ValueError, UnicodeDecodeError) as error:
        raise TreetopError(f"{path}: not a readable fastText model ({error})") from None


def parse_model(file: IO[bytes]) -> tuple[list[str], np.ndarray]:
    """Words and vectors of an open file, read in its order: arguments, dictionary, input matrix."""
    _, version = read_values(file, "ii")
    arguments = read_values(file, "12i")
    width, buckets, shortest, longest = arguments[0], arguments[8], arguments[9], arguments[10]
    read_values(file, "d")
    if version == 11 and arguments[7] == 3:
        longest = 0  # old classifiers were saved with a value that they did not use
    size, count, _ = read_values(file, "3i")
    read_values(file, "q")
    (pruned,) = read_values(file, "q")
    words = []
    for _ in range(size):
        word = read_word(file)
        _, kind = read_values(file, "qb")
        if kind == WORD_TYPE:
            words.append(word)
    if pruned > 0 or read_values(file, "?")[0]:
        raise ValueError("it is quantized: use the original .bin or the .vec file")
    rows, columns = read_values(file, "qq")
    if columns != width or rows < count:
        raise ValueError("its matrix does not fit its dictionary")
    matrix = np.frombuffer(file.read(4 * rows * columns), np.float32).reshape(rows, columns)
    vectors = np.empty((count, width), np.float32)
    for number, word in enumerate(words):
        subwords = subword_rows(word, shortest, longest, buckets, count)
        vectors[number] = matrix[[number, *subwords]].mean(axis=0)
    return words, vectors


def read_values(file: IO[bytes], values: str) -> tuple[int, ...]:
    """Little-endian values, in the format of `struct` and without padding."""
    return struct.unpack(f"<{values}", file.read(struct.calcsize(f"<{values}")))


def read_word(file: IO[bytes]) -> str:
    """A word, which ends with a zero byte."""
    word = bytearray()
    while (byte := file.read(1)) != b"\0":
        if not byte:
            raise ValueError("it ends within the dictionary")
        word += byte
    return word.decode("utf-8", "replace")


def subword_rows(word: str, shortest: int, longest: int, buckets: int, words: int) -> list[int]:
    """Rows of the matrix that hold the subwords of a word; subwords are hashed to rows."""
    if word == "</s>" or longest == 0:
        return []
    marked = f"<{word}>"
    rows = []
    for start in range(len(marked)):
        for end in range(start + shortest, min(start + longest, len(marked)) + 1):
            if end - start == 1 and (start == 0 or end == len(marked)):
                continue
            rows.append(words + fnv(marked[start:end].encode("utf-8")) % buckets)
    return rows


def fnv(text: bytes) -> int:
    """FastText's hash: 32-bit FNV-1a over signed bytes."""
    value = FNV_OFFSET
    for byte in text:
        signed = byte if byte < 128 else byte | 0xFFFFFF00
        value = ((value ^ signed) * FNV_PRIME) & 0xFFFFFFFF
    return value
