"""Texts to token ids, block by block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from treetop.errors import TreetopError
from treetop.features.words.unicode import CONTEXT_SENSITIVE, character_classes, lower_case
from treetop.kernels import text as kernel
from treetop.runtime import parallel

BLOCK_BYTES = 8 << 20
LARGEST_DOCUMENT = 1 << 30
EMPTY_TABLE_SLOTS = 1 << 16
# Slots of a hash table. Mixed keys in a table that is half full make runs of two hundred at most.
LONGEST_RUN = 4096
NO_CASE = np.empty(0, np.int32)


class Block(NamedTuple):
    """Token ids of consecutive documents."""

    ids: np.ndarray  # int32; -1 is an unknown token
    ends: np.ndarray  # int64, where each document ends in `ids`
    first_document: int


@dataclass(frozen=True)
class Reading:
    """How texts are split into tokens."""

    unit: int  # kernel.WORDS or kernel.CHARACTERS
    lowercase: bool
    shortest: int  # tokens of fewer characters are ignored
    first: int | None = None  # number of characters read of each text; None: all

    def encode(self, texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """Texts as one buffer of UTF-8 (uint8), and their offsets with the end of the last (int64)."""
        if self.first is not None:
            texts = [cut_at_word(text, self.first) for text in texts]
        if self.lowercase:
            texts = [
                text.lower() if any(letter in text for letter in CONTEXT_SENSITIVE) else text
                for text in texts
            ]
        buffer, ends = chain_names(texts)
        return buffer, np.append(0, ends)


def cut_at_word(text: str, characters: int) -> str:
    """The first `characters` of a text, without the beginning of a word that they would cut in two."""
    if len(text) <= characters:
        return text
    whole_words, space, _ = text[: characters + 1].rpartition(" ")
    return whole_words if space else text[:characters]


def check_text(text: object, number: int) -> None:
    """Raise an error if document `number` is not a string."""
    if not isinstance(text, str):
        raise TreetopError(
            f"document {number} is of type {type(text).__name__}, not a string: texts must be strings"
        )


def blocks_of_text(texts: Iterable[str], block_bytes: int = BLOCK_BYTES) -> Iterator[list[str]]:
    """Lists of texts of about `block_bytes` each, to process a stream in bounded memory."""
    block: list[str] = []
    size = 0
    for number, text in enumerate(texts):
        check_text(text, number)
        if len(text) > LARGEST_DOCUMENT:
            raise TreetopError(
                f"document {number} has {len(text):,} characters: the limit is {LARGEST_DOCUMENT:,}"
            )
        block.append(text)
        size += len(text) + 16
        if size >= block_bytes:
            yield block
            block, size = [], 0
    if block:
        yield block


class HashTable(NamedTuple):
    """Ids by hash: the id of the hash ``keys[slot]`` is ``values[slot]``. Free slots have the key 0."""

    keys: np.ndarray  # uint64, as many as a power of two
    values: np.ndarray  # int32

    @classmethod
    def of_size(cls, slots: int) -> HashTable:
        """An empty table."""
        return cls(np.zeros(slots, np.uint64), np.zeros(slots, np.int32))

    def fill(self, hashes: np.ndarray, ids: np.ndarray) -> None:
        """Insert hashes (uint64) that the table does not hold yet, with their ids (int32)."""
        kernel.fill_table(hashes, ids, self.keys, self.values)


def check_table(name: str, keys: np.ndarray, values: np.ndarray, least: int, below: int) -> None:
    """Raise unless a hash table read from a file is fast to search and leads to values in bounds.

    Without a free slot the search for an unknown key would never end, and after a long run of taken
    ones it would take long. Tables are at most half full, where runs of a few hundred do not occur.
    """
    size = keys.size
    if size == 0 or size & (size - 1):
        raise TreetopError(f"the table {name} has {size:,} slots, which is not a power of two")
    free = np.flatnonzero(keys == 0)
    if not free.size or np.diff(free, append=free[0] + size).max() > LONGEST_RUN:
        raise TreetopError(f"the table {name} is too full to be searched")
    taken = values[keys != 0]
    if taken.size and not (taken.min() >= least and taken.max() < below):
        raise TreetopError(f"the table {name} holds a value that is not from {least} to {below - 1:,}")


def check_name_ends(ends: np.ndarray, names: np.ndarray) -> None:
    """Raise unless `ends`, read from a file, split a buffer of names: they never fall or exceed it."""
    if (np.diff(ends, prepend=0) < 0).any() or (ends.size and ends[-1] > names.size):
        raise TreetopError("the ends of names decrease, or exceed the last name")


class TokenBlock(NamedTuple):
    """The tokens of a block of texts. The last four arrays describe tokens missing from the table."""

    buffer: np.ndarray  # uint8, the texts as UTF-8
    ends: np.ndarray  # int64, where each document ends in `ids`
    ids: np.ndarray  # int32
    positions: np.ndarray  # int64, in `ids`
    hashes: np.ndarray  # uint64
    starts: np.ndarray  # int64, in `buffer`
    lengths: np.ndarray  # int32, in bytes


def tokenize_texts(texts: list[str], reading: Reading, table: HashTable, threads: int) -> TokenBlock:
    """The tokens of `texts`, with their ids in the table, or -1 if it does not hold them."""
    buffer, offsets = reading.encode(texts)
    classes = character_classes()
    lower = lower_case() if reading.lowercase else NO_CASE

    def work(task: tuple[int, int], _: np.ndarray) -> list[np.ndarray]:
        first, last = task
        most = int(offsets[last] - offsets[first]) + 1
        if reading.unit == kernel.WORDS:  # there is a separator between words
            most = most // 2 + (last - first) + 1
        ids, counts = np.empty(most, np.int32), np.empty(last - first, np.int64)
        unknown = [np.empty(most, dtype) for dtype in (np.int64, np.uint64, np.int64, np.int32)]
        count, unknown_count = kernel.tokenize(
            buffer,
            offsets,
            first,
            last,
            classes,
            lower,
            reading.unit,
            reading.shortest,
            *table,
            ids,
            counts,
            *unknown,
        )
        return [counts, ids[:count], *(column[:unknown_count] for column in unknown)]

    parts = parallel.over_ranges(work, len(texts), threads)
    offset = 0
    for part in parts:
        part[2] += offset
        offset += part[1].size
    counts, *columns = (np.concatenate(column) for column in zip(*parts))
    return TokenBlock(buffer, np.cumsum(counts), *columns)


@dataclass
class TokenTable:
    """Ids of tokens, numbered in the order of their first occurrence."""

    reading: Reading
    ids: HashTable = field(default_factory=lambda: HashTable.of_size(EMPTY_TABLE_SLOTS))
    names: np.ndarray = field(default_factory=lambda: np.empty(1 << 18, np.uint8))
    name_ends: np.ndarray = field(default_factory=lambda: np.empty(1 << 15, np.int64))
    known: int = 0

    def leave_out(self, words: Iterable[str]) -> None:
        """Mark `words` as stop words. To be called before `read`."""
        for word in words:
            hashes = tokenize_texts([word], self.reading, self.ids, threads=1).hashes
            self.ids.fill(hashes, np.full(hashes.size, kernel.STOP, np.int32))

    def read(self, texts: list[str], first_document: int, threads: int) -> Block:
        """Token ids of a block of texts; adds the tokens that the table does not hold yet."""
        tokens = tokenize_texts(texts, self.reading, self.ids, threads)
        while (known := self._intern(tokens)) < 0:
            self.known = -1 - known
            self._enlarge()
        self.known = known
        return Block(tokens.ids, tokens.ends, first_document)

    def _intern(self, tokens: TokenBlock) -> int:
        known = kernel.intern(
            tokens.buffer,
            tokens.ids,
            tokens.positions,
            tokens.hashes,
            tokens.starts,
            tokens.lengths,
            *self.ids,
            self.known,
            self.names,
            self.name_ends,
        )
        return int(known)

    def _enlarge(self) -> None:
        keys, values = self.ids
        self.ids = HashTable.of_size(4 * keys.size)
        self.ids.fill(keys[keys != 0], values[keys != 0])
        self.names = np.concatenate([self.names, np.empty(3 * self.names.size, np.uint8)])
        self.name_ends = np.concatenate([self.name_ends, np.empty(3 * self.name_ends.size, int)])

    def hashes(self) -> np.ndarray:
        """The hash of each token, by id: uint64."""
        keys, values = self.ids
        hashes = np.zeros(self.known, np.uint64)
        used = (keys != 0) & (values >= 0)
        hashes[values[used]] = keys[used]
        return hashes

    def stop_hashes(self) -> np.ndarray:
        """The hashes of the stop words: uint64."""
        keys, values = self.ids
        return np.asarray(keys[(keys != 0) & (values == kernel.STOP)])

    def name(self, token: int) -> str:
        """The token of this id, as text."""
        start = self.name_ends[token - 1] if token else 0
        text = self.names[start : self.name_ends[token]].tobytes().decode("utf-8")
        if self.reading.unit == kernel.CHARACTERS and len(text) > 1:
            text = " "  # a run of white space counts as one space
        return text.lower() if self.reading.lowercase else text


def chain_names(names: Iterable[str]) -> tuple[np.ndarray, np.ndarray]:
    """Strings as one buffer of UTF-8 (uint8), and where each ends (int64)."""
    pieces = [name.encode("utf-8", "replace") for name in names]
    ends = np.cumsum(np.fromiter(map(len, pieces), np.int64, len(pieces)))
    return np.frombuffer(b"".join(pieces), np.uint8), ends.astype(np.int64)
