"""Chooses the n-grams that become features, and builds the tables that find them in texts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from treetop.features.words.tokens import Block, HashTable, TokenTable
from treetop.features.words.wanted import Fewest, TextMemory, Wanted
from treetop.kernels import ngrams as kernel
from treetop.kernels.text import STOP
from treetop.runtime import parallel
from treetop.runtime.arrays import forget
from treetop.runtime.spool import Shelf


class GramLevel(NamedTuple):
    """The frequent n-grams of one length, by id within the level."""

    prefixes: np.ndarray  # int32, id of the shorter n-gram in the level before, -1 for single tokens
    tokens: np.ndarray  # int32, the last token
    documents: np.ndarray  # int64, document frequency
    occurrences: np.ndarray  # int64, frequency in the corpus

    def above(self, fewest: int) -> GramLevel:
        """The n-grams that occur at least so often."""
        kept = self.occurrences >= fewest
        return self if kept.all() else GramLevel(*(column[kept] for column in self))


@dataclass(frozen=True)
class GramTable:
    """Finds the feature of an n-gram. N-grams of all lengths share one numbering, tokens first."""

    token_keys: np.ndarray  # uint64, hash table from the hash of a token
    token_values: np.ndarray  # int32, to its id
    gram_keys: np.ndarray  # uint64, hash table from an n-gram and the token that follows
    gram_values: np.ndarray  # int32, to the longer n-gram
    feature_of: np.ndarray  # int32, feature of each n-gram, or -1


def slots_for(count: int) -> int:
    """The size of a hash table for `count` keys: a power of two that leaves half the slots free."""
    return 1 << max(4, int(2 * count).bit_length())


def token_level(blocks: list[Block], tokens: int, threads: int) -> GramLevel:
    """The level of single tokens, all of them, with their frequencies."""

    def work(task: tuple[int, int], _: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        seen = np.full(tokens, -1, np.int64)
        documents, occurrences = np.zeros(tokens, np.int64), np.zeros(tokens, np.int64)
        for block in blocks[slice(*task)]:
            kernel.count_tokens(
                block.ids, block.ends, seen, documents, occurrences, block.first_document
            )
            forget(block.ids)
        return documents, occurrences

    parts = parallel.run(work, parallel.ranges(len(blocks), threads), threads)
    documents, occurrences = (np.sum(column, axis=0) for column in zip(*parts))
    ids = np.arange(tokens, dtype=np.int32)
    return GramLevel(np.full(tokens, -1, np.int32), ids, documents, occurrences)


class Positions(NamedTuple):
    """The positions in a corpus of the frequent n-grams of one length, which may be extended."""

    blocks: list[Block]
    prefixes: list[np.ndarray]  # int32, by block: id of the n-gram at each position, or -1
    prefix_count: int  # number of distinct n-grams
    frequent: np.ndarray  # int32, each token's id, or -1 if it is too rare to be part of an n-gram
    reach: int  # length of the n-grams in tokens
    limit: int  # bytes of `prefixes` that stay in memory

    def each(self) -> Iterator[tuple[Block, np.ndarray]]:
        """Blocks and their prefixes; those mapped from a file are in memory one at a time."""
        for block, prefix in zip(self.blocks, self.prefixes, strict=True):
            yield block, prefix
            forget(block.ids)
            forget(prefix)

    def pair_ends(self) -> np.ndarray:
        """Cumulative number of positions at which each n-gram can be extended: int64."""
        counts = np.zeros(self.prefix_count, np.int64)
        for block, prefix in self.each():
            kernel.count_pairs(prefix, block.ids, self.frequent, block.ends, self.reach, counts)
        return np.cumsum(counts)

    def pairs(self, low: int, high: int, ends: np.ndarray) -> Pairs:
        """The tokens that follow the n-grams `low` to `high`; `ends` is from `pair_ends`."""
        base = ends[low - 1] if low else 0
        count = int(ends[high - 1] - base)
        cursor = np.concatenate([[0], ends[low : high - 1] - base])
        tokens, documents = np.empty(count, np.int32), np.empty(count, np.int32)
        for block, prefix in self.each():
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
        """Positions of the n-grams in `level`, one token longer."""
        count = level.tokens.size
        table = pair_table(level.prefixes, level.tokens, np.arange(count))
        shelf, longer = Shelf(self.limit), []
        for block, prefix in self.each():
            own = np.empty_like(prefix)
            kernel.lengthen(prefix, block.ids, self.frequent, block.ends, self.reach, *table, own)
            longer.append(shelf.put(own))
        return self._replace(prefixes=longer, prefix_count=count, reach=self.reach + 1)


class Pairs(NamedTuple):
    """The tokens that follow n-grams, with their documents, grouped by n-gram."""

    low: int  # id of the first n-gram
    ends: np.ndarray  # int64, end of each n-gram's group in the next two arrays
    tokens: np.ndarray  # int32
    documents: np.ndarray  # int32

    def frequent(self, vocabulary: int, least: int, fewest: int) -> GramLevel:
        """The pairs in at least `least` documents that occur at least `fewest` times.

        `vocabulary` is the number of tokens.
        """
        scratch = [np.full(vocabulary, start, np.int64) for start in (-1, 0, 0)]
        level = empty_level(self.tokens.size // max(least, fewest) + 1)
        count = kernel.frequent_pairs(*self[1:], self.low, least, fewest, *scratch, *level)
        return GramLevel(*(column[:count].copy() for column in level))


def empty_level(size: int) -> GramLevel:
    """A level with uninitialized arrays for `size` n-grams."""
    return GramLevel(*(np.empty(size, dtype) for dtype in (np.int32, np.int32, np.int64, np.int64)))


def longer_level(shorter: Positions, fewest: Fewest, pairs: int, threads: int) -> GramLevel:
    """The wanted n-grams that extend those in `shorter` by one token; `pairs` are counted at a time."""
    ends = shorter.pair_ends()
    total = int(ends[-1]) if ends.size else 0
    pairs_per_task = min(total // (2 * threads), pairs) + 1
    edges = np.searchsorted(ends, np.arange(0, total, pairs_per_task)[1:])
    edges = np.unique(np.concatenate([[0], edges, [ends.size]]))

    def work(task: tuple[int, int], _: np.ndarray) -> GramLevel:
        following = shorter.pairs(*task, ends)
        least, enough = fewest.wanted.least, fewest.occurrences
        level = following.frequent(shorter.frequent.size, least, enough)
        fewest.count(shorter.reach + 1, level.documents, level.occurrences)
        return level.above(fewest.occurrences)

    tasks = list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
    parts = [empty_level(0), *parallel.run(work, tasks, threads)]
    parts = [part.above(fewest.occurrences) for part in parts]
    return GramLevel(*(np.concatenate(column) for column in zip(*parts)))


def count_levels(
    blocks: list[Block], tokens: int, wanted: Wanted, threads: int, memory: TextMemory
) -> list[GramLevel]:
    """All tokens, then the n-grams of 2 to `wanted.longest` tokens that features may be made of."""
    levels, fewest = [token_level(blocks, tokens, threads)], Fewest(wanted)
    if wanted.longest == 1:
        return levels
    fewest.count(1, levels[0].documents, levels[0].occurrences)
    enough = levels[0].documents >= wanted.least
    enough &= levels[0].occurrences >= fewest.occurrences
    frequent = np.where(enough, levels[0].tokens, -1).astype(np.int32)
    shelf = Shelf(memory.kept)
    prefixes = [shelf.put(prefixes_of(block, frequent)) for block in blocks]
    positions = Positions(blocks, prefixes, tokens, frequent, reach=1, limit=memory.kept)
    for reach in range(1, wanted.longest):
        pairs = memory.pairs_with(tokens, threads)
        levels.append(longer_level(positions, fewest, pairs, threads))
        if reach + 1 < wanted.longest:
            positions = positions.lengthened(levels[-1])
    return levels


def prefixes_of(block: Block, frequent: np.ndarray) -> np.ndarray:
    """The frequent token at each position, or -1; the block takes no memory afterwards."""
    prefixes: np.ndarray = frequent[block.ids]
    forget(block.ids)
    return prefixes


def pair_table(prefixes: np.ndarray, tokens: np.ndarray, ids: np.ndarray) -> HashTable:
    """A hash table from (n-gram, following token) to the longer n-gram."""
    table = HashTable.of_size(slots_for(ids.size))
    kernel.fill_pairs(*(column.astype(np.int32) for column in (prefixes, tokens, ids)), *table)
    return table


def choose(levels: list[GramLevel], wanted: Wanted) -> list[np.ndarray]:
    """The feature of each n-gram, or -1, by level.

    Of more n-grams than may become features, those that occur most often in the corpus are chosen.
    Features are numbered by descending document frequency, so that common ones are close together in
    memory.
    """
    documents = np.concatenate([level.documents for level in levels])
    occurrences = np.concatenate([level.occurrences for level in levels])
    sizes = [level.documents.size for level in levels]
    long_enough = np.repeat(np.arange(1, len(levels) + 1) >= wanted.shortest, sizes)
    fitting = (documents >= wanted.least) & (documents <= wanted.most)
    chosen = np.flatnonzero(long_enough & fitting)
    if wanted.features is not None and chosen.size > wanted.features:
        chosen = chosen[np.argsort(-occurrences[chosen], kind="stable")[: wanted.features]]
        chosen.sort()
    chosen = chosen[np.argsort(-documents[chosen], kind="stable")]
    feature_of = np.full(documents.size, -1, np.int32)
    feature_of[chosen] = np.arange(chosen.size, dtype=np.int32)
    return np.split(feature_of, np.cumsum(sizes)[:-1])


def build_table(
    table: TokenTable, levels: list[GramLevel], features: list[np.ndarray]
) -> tuple[GramTable, np.ndarray, np.ndarray]:
    """The table of the chosen n-grams and their prefixes, without any other n-gram.

    Also returns the new id of each token (-1 if it is not needed) and the tokens of each feature.
    """
    needed = needed_grams(levels, features)
    all_needed = np.concatenate(needed)
    numbers = np.where(all_needed, np.cumsum(all_needed, dtype=np.int32) - 1, -1)
    new_ids = np.split(numbers, np.cumsum([flags.size for flags in needed])[:-1])

    empty = np.empty(0, np.int32)
    pairs = [(empty, empty, empty)]
    for length, (level, flags) in enumerate(zip(levels[1:], needed[1:], strict=True), start=1):
        prefixes = new_ids[length - 1][level.prefixes[flags]]
        pairs.append((prefixes, new_ids[0][level.tokens[flags]], new_ids[length][flags]))
    prefixes, following, longer = (np.concatenate(column) for column in zip(*pairs))
    grams = pair_table(prefixes, following, longer)

    hashes, stops = table.hashes()[needed[0]], table.stop_hashes()
    tokens = HashTable.of_size(slots_for(hashes.size + stops.size))
    tokens.fill(hashes, np.arange(hashes.size, dtype=np.int32))
    tokens.fill(stops, np.full(stops.size, STOP, np.int32))
    gram_table = GramTable(*tokens, *grams, np.concatenate(features)[all_needed])
    return gram_table, new_ids[0], spell(levels, features, new_ids[0])


def needed_grams(levels: list[GramLevel], features: list[np.ndarray]) -> list[np.ndarray]:
    """Whether each n-gram is a feature, a prefix of one or a token in one: bool, by level."""
    needed = [feature >= 0 for feature in features]
    for shorter, longer, level in zip(needed[-2::-1], needed[:0:-1], levels[:0:-1], strict=True):
        shorter[level.prefixes[longer]] = True
    for longer, level in zip(needed[1:], levels[1:], strict=True):
        needed[0][level.tokens[longer]] = True
    return needed


def spell(levels: list[GramLevel], features: list[np.ndarray], new_ids: np.ndarray) -> np.ndarray:
    """The tokens of each feature: int32, features x longest, padded with -1."""
    count = sum(int((feature >= 0).sum()) for feature in features)
    spelling = np.full((count, len(levels)), -1, np.int32)
    for length, feature in enumerate(features):
        chosen = np.flatnonzero(feature >= 0)
        grams = chosen
        for position in range(length, -1, -1):
            spelling[feature[chosen], position] = new_ids[levels[position].tokens[grams]]
            grams = levels[position].prefixes[grams]
    return spelling
