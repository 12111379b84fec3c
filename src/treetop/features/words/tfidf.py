"""Φ_tfidf: texts to sparse rows of length 1, with the values of scikit-learn's TfidfVectorizer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from treetop.errors import TreetopError
from treetop.features.hybrid import raw_csr, scipy_csr
from treetop.features.words.corpus import Spool, read_corpus
from treetop.features.words.grams import GramTable, build_table, choose, count_levels
from treetop.features.words.stacking import joined_blocks, side_by_side, stack
from treetop.features.words.tokens import (
    Block,
    HashTable,
    Reading,
    TokenTable,
    blocks_of_text,
    chain_names,
    check_name_ends,
    check_table,
    tokenize_texts,
)
from treetop.features.words.wanted import TextMemory, Wanted
from treetop.kernels import ngrams as kernel
from treetop.kernels import text
from treetop.runtime import parallel
from treetop.runtime.arrays import forget, part
from treetop.runtime.checking import Column, check_arrays
from treetop.runtime.spool import Shelf
from treetop.settings.parts import Analyser

TABLE = tuple(field.name for field in fields(GramTable))
LEARNED = ("idf", "spelling", "names", "name_ends")
COLUMNS = {
    "token_keys": Column("uint64", ("tokens",)),
    "token_values": Column("int32", ("tokens",)),
    "gram_keys": Column("uint64", ("pairs",)),
    "gram_values": Column("int32", ("pairs",)),
    "feature_of": Column("int32", ("grams",), least=-1, below="features"),
    "idf": Column("float64", ("features",)),
    "spelling": Column("int32", ("features", "longest"), least=-1, below="names"),
    "names": Column("uint8", ("letters",)),
    "name_ends": Column("int64", ("names",), least=0),
}
SMALL_BLOCK = 1 << 16  # characters for which starting threads would take longer than the work
DEFAULT_MEMORY = TextMemory()
UNITS = {"word": text.WORDS, "char": text.CHARACTERS}


def smooth_idf(documents: np.ndarray, total: int) -> np.ndarray:
    """ln((1 + N) / (1 + df)) + 1, as in scikit-learn: float64."""
    return np.log((1.0 + total) / (1.0 + documents)) + 1.0


def reading_of(analyser: Analyser) -> Reading:
    """How an analyzer splits texts into tokens."""
    return Reading(UNITS[analyser.unit], analyser.lowercase, analyser.shortest, analyser.first)


@dataclass(frozen=True)
class FittedAnalyser:
    """An analyzer with what it learned: n-grams and their weights."""

    analyser: Analyser
    table: GramTable
    idf: np.ndarray  # float64, by feature
    spelling: np.ndarray  # int32, features x longest: tokens of a feature, -1 after the last
    names: np.ndarray  # uint8, the tokens as UTF-8, one after the other
    name_ends: np.ndarray  # int64, where each token ends in `names`

    @property
    def features(self) -> int:
        """Number of features."""
        return int(self.idf.size)

    def name(self, feature: int) -> str:
        """The n-gram of a feature, as text."""
        tokens = [token for token in self.spelling[feature].tolist() if token >= 0]
        starts = [self.name_ends[token - 1] if token else 0 for token in tokens]
        spans = zip(starts, self.name_ends[tokens], strict=True)
        words = (self.names[start:end].tobytes().decode("utf-8", "replace") for start, end in spans)
        return (" " if self.analyser.unit == "word" else "").join(words)

    def read(self, texts: list[str], threads: int) -> Block:
        """Token ids of texts."""
        ids = HashTable(self.table.token_keys, self.table.token_values)
        tokens = tokenize_texts(texts, reading_of(self.analyser), ids, threads)
        return Block(tokens.ids, tokens.ends, 0)

    def _counts(
        self, block: Block, starts: np.ndarray, first: int, last: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Features of documents `first` to `last`, their counts, and where each document ends."""
        longest = self.analyser.ngrams[1]
        most = int(starts[last] - starts[first]) * longest
        features, counts = np.empty(most, np.int32), np.empty(most, np.float32)
        ends = np.empty(last - first, np.int64)
        written = kernel.count_features(
            block.ids,
            block.ends,
            first,
            last,
            longest,
            self.table.feature_of,
            self.features,
            self.table.gram_keys,
            self.table.gram_values,
            int(starts[first]),
            features,
            counts,
            ends,
        )
        return features[:written].copy(), counts[:written].copy(), ends

    def rows(self, block: Block, threads: int) -> sp.csr_matrix:
        """tf-idf of the documents in `block`: float32 CSR, documents x features."""
        starts = np.concatenate([[0], block.ends])

        def work(task: tuple[int, int], _: np.ndarray) -> tuple[np.ndarray, ...]:
            features, values, ends = self._counts(block, starts, *task)
            kernel.weigh(ends, features, values, self.idf, int(self.analyser.sublinear))
            return features, values, np.diff(ends, prepend=0)

        parts = parallel.over_ranges(work, block.ends.size, threads)
        features, values, sizes = (np.concatenate(column) for column in zip(*parts))
        shape = (block.ends.size, self.features)
        return raw_csr(values, features, np.append(0, np.cumsum(sizes)), shape)


def empty_table(analyser: Analyser) -> TokenTable:
    """A token table that holds only the stop words of an analyzer."""
    tokens = TokenTable(reading_of(analyser))
    tokens.leave_out(analyser.stop_words)
    return tokens


def fit_analyser(
    analyser: Analyser,
    tokens: TokenTable,
    spool: Spool,
    shelf: Shelf,
    *,
    documents: int,
    threads: int,
    memory: TextMemory,
) -> tuple[FittedAnalyser, list[sp.csr_matrix]]:
    """Learn the features of one analyzer; also returns the rows of the texts, in blocks on `shelf`."""
    wanted = Wanted.by(analyser, documents)
    levels = count_levels(spool.blocks, tokens.known, wanted, threads, memory)
    chosen = choose(levels, wanted)
    table, new_ids, spelling = build_table(tokens, levels, chosen)
    names = (tokens.name(token) for token in np.flatnonzero(new_ids >= 0).tolist())
    frequencies = np.empty(len(spelling), np.int64)
    for level, feature in zip(levels, chosen, strict=True):
        frequencies[feature[feature >= 0]] = level.documents[feature >= 0]
    fitted = FittedAnalyser(
        analyser, table, smooth_idf(frequencies, documents), spelling, *chain_names(names)
    )
    blocks = []
    for block in spool.blocks:
        blocks.append(kept(fitted.rows(block._replace(ids=new_ids[block.ids]), threads), shelf))
        forget(block.ids)
    return fitted, blocks


def kept(rows: sp.csr_matrix, shelf: Shelf) -> sp.csr_matrix:
    """The same matrix; `shelf` keeps its values and their columns."""
    return raw_csr(shelf.put(rows.data), shelf.put(rows.indices), rows.indptr, rows.shape)


@dataclass(frozen=True)
class Tfidf:
    """The features of several analyzers side by side, made by `fit_tfidf`. Rows have length 1."""

    fitted: tuple[FittedAnalyser, ...]
    kind: ClassVar[str] = "words"

    def transform(self, texts: Iterable[str], threads: int | None = None) -> sp.csr_matrix:
        """float32 CSR, texts x features, with ascending indices in each row."""
        blocks = list(self.transform_blocks(texts, threads))
        if not blocks:
            return sp.csr_matrix((0, self.features), dtype=np.float32)
        return scipy_csr(stack(blocks, parallel.thread_count(threads)))

    def transform_blocks(
        self, texts: Iterable[str], threads: int | None = None
    ) -> Iterator[sp.csr_matrix]:
        """`transform` in blocks of some megabytes of text, for streams of any length."""
        for block in blocks_of_text(texts):
            used = parallel.thread_count(threads) if sum(map(len, block)) > SMALL_BLOCK else 1
            parts = [analyser.rows(analyser.read(block, used), used) for analyser in self.fitted]
            yield side_by_side(parts, used)

    @property
    def features(self) -> int:
        """Number of features."""
        return sum(self.widths)

    @property
    def widths(self) -> list[int]:
        """Number of features of each analyzer."""
        return [analyser.features for analyser in self.fitted]

    def feature_name(self, feature: int) -> str:
        """The n-gram of a feature, as text."""
        for analyser in self.fitted:
            if feature < analyser.features:
                return analyser.name(feature)
            feature -= analyser.features
        raise IndexError(f"there are {self.features} features")

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything that was learned, as arrays by name."""
        arrays: dict[str, np.ndarray] = {}
        for number, fitted in enumerate(self.fitted):
            arrays |= {f"{number}.{name}": getattr(fitted.table, name) for name in TABLE}
            arrays |= {f"{number}.{name}": getattr(fitted, name) for name in LEARNED}
        return arrays

    @classmethod
    def from_arrays(
        cls, analysers: Iterable[Analyser], arrays: Mapping[str, np.ndarray], threads: int = 1
    ) -> Tfidf:
        """The inverse of `arrays`, which may be from a stranger."""
        fitted = []
        for number, analyser in enumerate(analysers):
            sizes = {"longest": analyser.ngrams[1]}
            own = check_arrays(part(arrays, str(number)), COLUMNS, sizes, threads)
            for kind, least in (("token", text.STOP), ("gram", -1)):
                check_table(kind, own[f"{kind}_keys"], own[f"{kind}_values"], least, sizes["grams"])
            check_name_ends(own["name_ends"], own["names"])
            table = GramTable(**{name: own[name] for name in TABLE})
            fitted.append(FittedAnalyser(analyser, table, **{name: own[name] for name in LEARNED}))
        return cls(tuple(fitted))


def fit_tfidf(
    analysers: Iterable[Analyser],
    texts: Iterable[str],
    threads: int | None = None,
    memory: TextMemory = DEFAULT_MEMORY,
) -> tuple[Tfidf, sp.csr_matrix]:
    """Learn the features of analyzers; also returns the rows of the texts, which are read only once."""
    count = parallel.thread_count(threads)
    tfidf, blocks = fit_blocks(tuple(analysers), texts, count, memory)
    parallel.give_back()
    return tfidf, joined_blocks(blocks, memory.kept, count)


def fit_blocks(
    analysers: Sequence[Analyser], texts: Iterable[str], threads: int, memory: TextMemory
) -> tuple[Tfidf, list[list[sp.csr_matrix]]]:
    """`fit_tfidf` with the rows in blocks of documents. Token ids are freed when it returns."""
    tables = [empty_table(analyser) for analyser in analysers]
    spools, documents = read_corpus(texts, tables, threads, memory.kept)
    shelf, fitted, rows = Shelf(memory.kept), list[FittedAnalyser](), []
    for analyser, table in zip(analysers, tables, strict=True):
        own, blocks = fit_analyser(
            analyser,
            table,
            spools.pop(0),
            shelf,
            documents=documents,
            threads=threads,
            memory=memory,
        )
        fitted.append(own)
        rows.append(blocks)
        parallel.give_back()
    tfidf = Tfidf(tuple(fitted))
    if not tfidf.features:
        raise TreetopError(
            "no feature is left: the texts are empty or min_df and max_df exclude everything"
        )
    return tfidf, [list(parts) for parts in zip(*rows, strict=True)]
