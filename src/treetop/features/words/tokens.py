"""Text to token ids: a stream of documents in, blocks of ids out, in bounded memory."""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import IO, NamedTuple

import numpy as np

from treetop.errors import TreetopError
from treetop.features.words.unicode import CONTEXT_SENSITIVE, character_classes, lower_case
from treetop.kernels import text as kernel
from treetop.runtime import parallel

BLOCK_BYTES = 8 << 20
# Of a block while features are learned. Short tasks would spend their time waiting for the interpreter
# lock, which the import of torch holds most of the time then.
BLOCK_BYTES_A_THREAD = 4 << 20
SPOOL_BYTES = 1 << 30
LARGEST_DOCUMENT = 1 << 30
EMPTY_TABLE_SLOTS = 1 << 16
NO_CASE = np.empty(0, np.int32)


class Block(NamedTuple):
    """Token ids of some consecutive documents."""

    ids: np.ndarray  # int32; -1 is an unknown token
    ends: np.ndarray  # int64, where each document ends in `ids`
    first_document: int


@dataclass(frozen=True)
class Reading:
    """How text is cut into tokens."""

    unit: int  # kernel.WORDS or kernel.CHARACTERS
    lowercase: bool
    shortest: int
    first: int | None = None  # characters of a text that are looked at; None: all

    def encode(self, texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """Documents as one buffer of UTF-8 and the offsets of their beginnings and the end."""
        if self.first is not None:
            texts = [cut_at_word(text, self.first) for text in texts]
        if self.lowercase:
            texts = [
                text.lower() if any(letter in text for letter in CONTEXT_SENSITIVE) else text
                for text in texts
            ]
        pieces = [text.encode("utf-8", "replace") for text in texts]
        offsets = np.zeros(len(pieces) + 1, np.int64)
        np.cumsum([len(piece) for piece in pieces], out=offsets[1:])
        return np.frombuffer(b"".join(pieces), np.uint8), offsets


def cut_at_word(text: str, characters: int) -> str:
    """The first `characters` of a text, without a word that would be cut in two."""
    if len(text) <= characters:
        return text
    whole, space, _ = text[: characters + 1].rpartition(" ")
    return whole if space else text[:characters]


def check_text(text: object, number: int) -> None:
    """Raise if document `number` is no text."""
    if not isinstance(text, str):
        raise TreetopError(
            f"document {number} is of type {type(text).__name__}, not a string: texts must be strings"
        )


def blocks_of_text(texts: Iterable[str], most: int = BLOCK_BYTES) -> Iterator[list[str]]:
    """Lists of documents of some megabytes each."""
    block: list[str] = []
    size = 0
    for number, text in enumerate(texts):
        check_text(text, number)
        if len(text) > LARGEST_DOCUMENT:
            raise TreetopError(f"document {number} has {len(text):,} characters: over the limit")
        block.append(text)
        size += len(text) + 16
        if size >= most:
            yield block
            block, size = [], 0
    if block:
        yield block


class HashTable(NamedTuple):
    """Ids by hash: that of ``keys[slot]`` is ``values[slot]``. A free slot has the key 0."""

    keys: np.ndarray  # uint64, a power of two
    values: np.ndarray  # int32

    @classmethod
    def of_size(cls, slots: int) -> HashTable:
        """An empty table."""
        return cls(np.zeros(slots, np.uint64), np.zeros(slots, np.int32))

    def fill(self, hashes: np.ndarray, ids: np.ndarray) -> None:
        """Enter hashes (uint64) that are not in the table, with their ids (int32)."""
        kernel.fill_table(hashes, ids, self.keys, self.values)


class FoundTokens(NamedTuple):
    """What the tokenizer found in a block. The last four describe the unknown tokens."""

    buffer: np.ndarray  # uint8, the texts as UTF-8
    ends: np.ndarray  # int64, where each document ends in `ids`
    ids: np.ndarray  # int32
    positions: np.ndarray  # int64, in `ids`
    hashes: np.ndarray  # uint64
    starts: np.ndarray  # int64, in `buffer`
    lengths: np.ndarray  # int32, in bytes


def tokenize_texts(texts: list[str], reading: Reading, table: HashTable, threads: int) -> FoundTokens:
    """Tokens of `texts`, those in the table with their id, the others with -1."""
    buffer, offsets = reading.encode(texts)
    classes = character_classes()
    lower = lower_case() if reading.lowercase else NO_CASE

    def work(task: tuple[int, int], _: np.ndarray) -> list[np.ndarray]:
        first, last = task
        room = int(offsets[last] - offsets[first]) + 1
        if reading.unit == kernel.WORDS:
            room = room // 2 + (last - first) + 1
        ids, counts = np.empty(room, np.int32), np.empty(last - first, np.int64)
        unknown = [np.empty(room, dtype) for dtype in (np.int64, np.uint64, np.int64, np.int32)]
        count, new = kernel.tokenize(
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
        return [counts, ids[:count], *(column[:new] for column in unknown)]

    parts = parallel.over_ranges(work, len(texts), threads)
    before = 0
    for part in parts:
        part[2] += before
        before += part[1].size
    counts, *columns = (np.concatenate(column) for column in zip(*parts))
    return FoundTokens(buffer, np.cumsum(counts), *columns)


@dataclass
class TokenTable:
    """Ids for tokens, given in the order of their first occurrence."""

    reading: Reading
    ids: HashTable = field(default_factory=lambda: HashTable.of_size(EMPTY_TABLE_SLOTS))
    names: np.ndarray = field(default_factory=lambda: np.empty(1 << 18, np.uint8))
    name_ends: np.ndarray = field(default_factory=lambda: np.empty(1 << 15, np.int64))
    known: int = 0

    def leave_out(self, words: Iterable[str]) -> None:
        """Make stop words of `words`. Call it before the first block."""
        for word in words:
            hashes = tokenize_texts([word], self.reading, self.ids, threads=1).hashes
            self.ids.fill(hashes, np.full(hashes.size, kernel.STOP, np.int32))

    def read(self, texts: list[str], first_document: int, threads: int) -> Block:
        """Token ids of a block of documents; new tokens get new ids."""
        tokens = tokenize_texts(texts, self.reading, self.ids, threads)
        while (known := self._intern(tokens)) < 0:
            self.known = -1 - known
            self._enlarge()
        self.known = known
        return Block(tokens.ids, tokens.ends, first_document)

    def _intern(self, tokens: FoundTokens) -> int:
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
        """Hash of each token, by id."""
        keys, values = self.ids
        hashes = np.zeros(self.known, np.uint64)
        used = (keys != 0) & (values >= 0)
        hashes[values[used]] = keys[used]
        return hashes

    def stop_hashes(self) -> np.ndarray:
        """Hashes of the stop words."""
        keys, values = self.ids
        stops: np.ndarray = keys[(keys != 0) & (values == kernel.STOP)]
        return stops

    def name(self, token: int) -> str:
        """The token as text."""
        start = self.name_ends[token - 1] if token else 0
        text = self.names[start : self.name_ends[token]].tobytes().decode("utf-8")
        if self.reading.unit == kernel.CHARACTERS and len(text) > 1:
            text = " "  # a run of white space stands for one space
        return text.lower() if self.reading.lowercase else text


class Spool:
    """Blocks kept for several passes: in memory up to a limit, the rest in a temporary file."""

    def __init__(self, limit: int = SPOOL_BYTES) -> None:
        self.blocks: list[Block] = []
        self.room = limit
        self.file: IO[bytes] | None = None

    def append(self, block: Block) -> None:
        """Keep a block."""
        if self.room >= block.ids.nbytes:
            self.room -= block.ids.nbytes
            self.blocks.append(block)
            return
        self.file = self.file or tempfile.TemporaryFile()  # noqa: SIM115 - lives with the spool
        start = -(-self.file.seek(0, 2) // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY
        self.file.seek(start)
        self.file.write(block.ids.tobytes())
        self.file.flush()
        if block.ids.size:
            view = mmap.mmap(
                self.file.fileno(), block.ids.nbytes, access=mmap.ACCESS_READ, offset=start
            )
            block = block._replace(ids=np.frombuffer(view, np.int32))
        self.blocks.append(block)


def read_corpus(
    texts: Iterable[str], tables: list[TokenTable], threads: int, spool_bytes: int = SPOOL_BYTES
) -> tuple[list[Spool], int]:
    """Every document's token ids in each table, and the number of documents. `texts` is read once."""
    spools = [Spool(spool_bytes) for _ in tables]
    documents = 0
    for block in blocks_of_text(texts, BLOCK_BYTES_A_THREAD * threads):
        for table, spool in zip(tables, spools, strict=True):
            spool.append(table.read(block, documents, threads))
        documents += len(block)
    return spools, documents


def chain_names(names: Iterable[str]) -> tuple[np.ndarray, np.ndarray]:
    """Names as one buffer of UTF-8 and where each ends."""
    pieces = [name.encode("utf-8", "replace") for name in names]
    ends = np.cumsum(np.fromiter(map(len, pieces), np.int64, len(pieces)))
    return np.frombuffer(b"".join(pieces), np.uint8), ends.astype(np.int64)
