"""Which n-grams become features: frequencies, limits, and the tables that find them again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from treetop.features.words.tokens import Block, HashTable, TokenTable
from treetop.kernels import ngrams as kernel
from treetop.kernels.text import STOP
from treetop.runtime import parallel

PAIRS_A_TASK = 1 << 26


class GramLevel(NamedTuple):
    """All n-grams of one length that are frequent enough, by id within the level."""

    prefixes: np.ndarray  # int32, id in the level before
    tokens: np.ndarray  # int32, the last token
    documents: np.ndarray  # int64, document frequency
    occurrences: np.ndarray  # int64, frequency in the whole corpus


@dataclass(frozen=True)
class GramTable:
    """Finds the feature of an n-gram. N-grams of all lengths share one numbering, tokens first."""

    token_keys: np.ndarray  # uint64 hash table: hash of a token ...
    token_values: np.ndarray  # int32 ... to its id
    gram_keys: np.ndarray  # uint64 hash table: n-gram and following token ...
    gram_values: np.ndarray  # int32 ... to the longer n-gram
    feature_of: np.ndarray  # int32, feature of an n-gram or -1


def slots_for(count: int) -> int:
    """Size of a hash table for `count` keys: a power of two, at most half full."""
    return 1 << max(4, int(2 * count).bit_length())


def token_level(blocks: list[Block], tokens: int, threads: int) -> GramLevel:
    """Frequencies of single tokens."""

    def work(task: tuple[int, int], _: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        seen = np.full(tokens, -1, np.int64)
        documents, occurrences = np.zeros(tokens, np.int64), np.zeros(tokens, np.int64)
        for block in blocks[slice(*task)]:
            kernel.count_tokens(
                block.ids, block.ends, seen, documents, occurrences, block.first_document
            )
        return documents, occurrences

    parts = parallel.run(work, parallel.ranges(len(blocks), threads), threads)
    documents, occurrences = (np.sum(column, axis=0) for column in zip(*parts))
    every = np.arange(tokens, dtype=np.int32)
    return GramLevel(np.full(tokens, -1, np.int32), every, documents, occurrences)


class Positions(NamedTuple):
    """Where the n-grams of `reach` tokens stand that are frequent enough to be lengthened."""

    blocks: list[Block]
    prefixes: list[np.ndarray]  # int32, by block: id of the n-gram at each position, or -1
    prefix_count: int  # number of different n-grams
    frequent: np.ndarray  # int32, a token itself, or -1 if too rare to be part of anything
    reach: int

    def pair_ends(self) -> np.ndarray:
        """Number of positions at which each n-gram can be lengthened, summed up."""
        counts = np.zeros(self.prefix_count, np.int64)
        for block, prefix in zip(self.blocks, self.prefixes, strict=True):
            kernel.count_pairs(prefix, block.ids, self.frequent, block.ends, self.reach, counts)
        return np.cumsum(counts)

    def pairs(self, low: int, high: int, ends: np.ndarray) -> Pairs:
        """What lengthens the n-grams `low` to `high`; `ends` is from `pair_ends`."""
        base = ends[low - 1] if low else 0
        room = int(ends[high - 1] - base)
        cursor = np.concatenate([[0], ends[low : high - 1] - base])
        tokens, documents = np.empty(room, np.int32), np.empty(room, np.int32)
        for block, prefix in zip(self.blocks, self.prefixes, strict=True):
            kernel.scatter_pairs(
                prefix,
                block.ids,
                self.frequent,
                block.ends,
                self.reach,
                low,
                high,
                block.first_document,
                cursor,
                tokens,
                documents,
            )
        return Pairs(low, cursor, tokens, documents)

    def lengthened(self, level: GramLevel) -> Positions:
        """Those of the n-grams in `level`, one token longer. They take the place of these."""
        count = level.tokens.size
        table = pair_table(level.prefixes, level.tokens, np.arange(count))
        for block, prefix in zip(self.blocks, self.prefixes, strict=True):
            kernel.lengthen(
                prefix.copy(), block.ids, self.frequent, block.ends, self.reach, *table, prefix
            )
        return self._replace(prefix_count=count, reach=self.reach + 1)


class Pairs(NamedTuple):
    """Tokens that follow n-grams, and their documents, sorted by n-gram."""

    low: int  # the first n-gram
    ends: np.ndarray  # int64, where each n-gram ends in the next two
    tokens: np.ndarray  # int32
    documents: np.ndarray  # int32

    def frequent(self, vocabulary: int, least: int) -> GramLevel:
        """The pairs in at least `least` documents; tokens are below `vocabulary`."""
        scratch = [np.full(vocabulary, start, np.int64) for start in (-1, 0, 0)]
        level = empty_level(self.tokens.size // least + 1)
        count = kernel.frequent_pairs(*self[1:], self.low, least, *scratch, *level)
        return GramLevel(*(column[:count].copy() for column in level))


def empty_level(size: int) -> GramLevel:
    """Room for n-grams."""
    return GramLevel(*(np.empty(size, dtype) for dtype in (np.int32, np.int32, np.int64, np.int64)))


def longer_level(shorter: Positions, least: int, threads: int) -> GramLevel:
    """N-grams of one token more than those in `shorter`, in at least `least` documents."""
    ends = shorter.pair_ends()
    total = int(ends[-1]) if ends.size else 0
    size = min(total // (2 * threads), PAIRS_A_TASK) + 1
    edges = np.unique(np.searchsorted(ends, np.arange(0, total, size)[1:]))
    edges = np.unique(np.concatenate([[0], edges, [ends.size]]))

    def work(task: tuple[int, int], _: np.ndarray) -> GramLevel:
        return shorter.pairs(*task, ends).frequent(shorter.frequent.size, least)

    tasks = list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
    parts = [empty_level(0), *parallel.run(work, tasks, threads)]
    return GramLevel(*(np.concatenate(column) for column in zip(*parts)))


def count_levels(
    blocks: list[Block], tokens: int, longest: int, least: int, threads: int
) -> list[GramLevel]:
    """Frequent n-grams of every length up to `longest`."""
    levels = [token_level(blocks, tokens, threads)]
    frequent = np.where(levels[0].documents >= least, levels[0].tokens, -1).astype(np.int32)
    positions = Positions(blocks, [frequent[block.ids] for block in blocks], tokens, frequent, reach=1)
    for reach in range(1, longest):
        levels.append(longer_level(positions, least, threads))
        if reach + 1 < longest:
            positions = positions.lengthened(levels[-1])
    return levels


def pair_table(prefixes: np.ndarray, tokens: np.ndarray, ids: np.ndarray) -> HashTable:
    """Hash table from (n-gram, following token) to the longer n-gram."""
    table = HashTable.of_size(slots_for(ids.size))
    kernel.fill_pairs(*(column.astype(np.int32) for column in (prefixes, tokens, ids)), *table)
    return table


def choose(
    levels: list[GramLevel], shortest: int, least: int, most: int, limit: int | None
) -> list[np.ndarray]:
    """For each level the feature of each n-gram, or -1.

    Features are numbered by falling document frequency, so that common ones lie close together in
    memory. Over `limit`, the n-grams that occur most often in the corpus are kept.
    """
    documents = np.concatenate([level.documents for level in levels])
    occurrences = np.concatenate([level.occurrences for level in levels])
    sizes = [level.documents.size for level in levels]
    long_enough = np.repeat(np.arange(1, len(levels) + 1) >= shortest, sizes)
    chosen = np.flatnonzero(long_enough & (documents >= least) & (documents <= most))
    if limit is not None and chosen.size > limit:
        chosen = chosen[np.argsort(-occurrences[chosen], kind="stable")[:limit]]
        chosen.sort()
    chosen = chosen[np.argsort(-documents[chosen], kind="stable")]
    feature_of = np.full(documents.size, -1, np.int32)
    feature_of[chosen] = np.arange(chosen.size, dtype=np.int32)
    return np.split(feature_of, np.cumsum(sizes)[:-1])


def build_table(
    table: TokenTable, levels: list[GramLevel], features: list[np.ndarray]
) -> tuple[GramTable, np.ndarray, np.ndarray]:
    """Tables that hold the chosen n-grams and those they begin with, and nothing else.

    Also returns the new id of each old token (-1: not needed), and each feature's spelling.
    """
    needed = [feature >= 0 for feature in features]
    for shorter, longer, level in zip(needed[-2::-1], needed[:0:-1], levels[:0:-1], strict=True):
        shorter[level.prefixes[longer]] = True
    for longer, level in zip(needed[1:], levels[1:], strict=True):
        needed[0][level.tokens[longer]] = True

    new_ids, start = [], 0
    for flags in needed:
        ids = np.where(flags, start + np.cumsum(flags) - 1, -1).astype(np.int32)
        new_ids.append(ids)
        start += int(flags.sum())
    feature_of = np.full(start, -1, np.int32)
    for ids, feature in zip(new_ids, features, strict=True):
        feature_of[ids[ids >= 0]] = feature[ids >= 0]

    pairs = [
        (new_ids[n - 1][level.prefixes[flags]], new_ids[0][level.tokens[flags]], new_ids[n][flags])
        for n, (level, flags) in enumerate(zip(levels, needed, strict=True))
        if n
    ]
    empty = np.empty(0, np.int32)
    merged = [np.concatenate([empty, *column]) for column in zip(*pairs)] or [empty] * 3
    grams = pair_table(merged[0], merged[1], merged[2])

    hashes, stops = table.hashes()[needed[0]], table.stop_hashes()
    tokens = HashTable.of_size(slots_for(hashes.size + stops.size))
    tokens.fill(hashes, np.arange(hashes.size, dtype=np.int32))
    tokens.fill(stops, np.full(stops.size, STOP, np.int32))
    return GramTable(*tokens, *grams, feature_of), new_ids[0], spell(levels, features, new_ids[0])


def spell(levels: list[GramLevel], features: list[np.ndarray], new_ids: np.ndarray) -> np.ndarray:
    """int32, features x longest: the tokens of each feature, -1 after the last."""
    count = sum(int((feature >= 0).sum()) for feature in features)
    spelling = np.full((count, len(levels)), -1, np.int32)
    for length, feature in enumerate(features):
        grams = np.flatnonzero(feature >= 0)
        at = grams
        for place in range(length, -1, -1):
            spelling[feature[grams], place] = new_ids[levels[place].tokens[at]]
            at = levels[place].prefixes[at]
    return spelling
