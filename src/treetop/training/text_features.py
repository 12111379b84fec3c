"""Φ_tfidf of the training texts, within a limit of memory that is planned before the work."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from treetop.errors import TreetopError
from treetop.features.words.corpus import BLOCK_BYTES_PER_THREAD
from treetop.features.words.tfidf import Tfidf, fit_tfidf
from treetop.features.words.wanted import TextMemory
from treetop.runtime import Runtime
from treetop.runtime.memory import memory_in_use, size_text
from treetop.settings.parts import Analyser

SAMPLED_TEXTS = 2000
WORD = re.compile(r"\w+")
# Bytes per character of the texts that are read at a time, per distinct token (and thread), per feature
# while n-grams are chosen, and per position whose n-grams are counted: what tables and arrays take at
# most, counted in the code.
OF_CHARACTER, OF_TOKEN, OF_TOKEN_AND_THREAD, OF_FEATURE, OF_PAIR = 24, 200, 52, 250, 32
FEWEST_PAIRS, LEAST_KEPT = 1 << 20, 16 << 20
# Token ids and rows of features, of each of which so much is kept, share the memory with other things.
SHARE_KEPT, SHARE_OF_PAIRS = 1 / 6, 1 / 3


class TextNeeds(NamedTuple):
    """Bytes that text features take besides what is kept of the corpus and the pairs of a thread."""

    fixed: int
    per_thread: int

    def with_threads(self, threads: int) -> int:
        """What so many threads take."""
        return self.fixed + threads * self.per_thread

    def least(self, threads: int) -> int:
        """What they take with as little as possible of the corpus in memory."""
        return self.with_threads(threads) + 2 * LEAST_KEPT + threads * OF_PAIR * FEWEST_PAIRS


def fit_text_features(
    analysers: Sequence[Analyser], texts: Iterable[str], runtime: Runtime, sampled: Any = None
) -> tuple[Tfidf, sp.csr_matrix]:
    """Learn Φ_tfidf and compute it for the texts, in the memory of the runtime.

    `sampled` are the same texts as a sequence, if `texts` is none.
    """
    threads, memory = text_plan(analysers, texts if sampled is None else sampled, runtime)
    return fit_tfidf(analysers, texts, threads, memory)


def text_plan(
    analysers: Sequence[Analyser], texts: Any, runtime: Runtime
) -> tuple[int | None, TextMemory]:
    """How many threads to use, and what to keep in memory; an error if nothing fits."""
    limit, loaded, threads = runtime.memory_bytes, memory_in_use(), runtime.thread_count
    if limit is None:
        return runtime.threads, TextMemory()
    tokens = distinct_words(texts) if isinstance(texts, Sequence) else 0
    needs, room = text_needs(analysers, tokens), limit - loaded
    if needs.least(1) > room:
        raise TreetopError(
            f"text features take about {size_text(loaded + needs.least(1))}, {size_text(loaded)} of it "
            f"for the documents, but memory is {size_text(limit)}: "
            f"{fitting_features(analysers, tokens, room)}"
        )
    while threads > 1 and needs.least(threads) > room:
        threads -= 1
    if threads < runtime.thread_count:
        runtime.reporter.note(f"{threads} of {runtime.thread_count} threads are used to save memory")
    rest, most = room - needs.with_threads(threads), TextMemory()
    kept = max(LEAST_KEPT, min(most.kept, int(SHARE_KEPT * rest)))
    pairs = min(most.pairs, int(SHARE_OF_PAIRS * rest) // (threads * OF_PAIR))
    return threads, TextMemory(kept, max(FEWEST_PAIRS, pairs))


def text_needs(analysers: Sequence[Analyser], tokens: int) -> TextNeeds:
    """Estimate what analyzers take of texts with so many distinct words."""
    words = [analyser for analyser in analysers if analyser.unit == "word"]
    features = sum(analyser.max_features or tokens for analyser in analysers)
    per_thread = OF_CHARACTER * BLOCK_BYTES_PER_THREAD + OF_TOKEN_AND_THREAD * tokens * bool(words)
    return TextNeeds(OF_TOKEN * tokens * len(words) + OF_FEATURE * features, per_thread)


def distinct_words(texts: Sequence[Any]) -> int:
    """Estimate the number of distinct words by Heaps' law: it is a power of the number of documents.

    The power is the growth from half of a sample to all of it. Vocabularies grow ever more slowly, so
    this is rather too many.
    """
    step = max(1, len(texts) // SAMPLED_TEXTS)
    sample = [text for text in texts[::step] if isinstance(text, str)]
    known: set[str] = set()
    sizes = []
    for text in sample:
        known.update(WORD.findall(text.lower()))
        sizes.append(len(known))
    if not known:
        return 0
    growth = np.log2(max(1.0, sizes[-1] / max(1, sizes[(len(sizes) - 1) // 2])))
    return int(sizes[-1] * (len(texts) / len(sample)) ** min(1.0, growth))


def fitting_features(analysers: Sequence[Analyser], tokens: int, room: int) -> str:
    """Which setting fits into so many bytes."""
    for features in (200_000, 50_000):
        fewer = [replace(analyser, max_features=features) for analyser in analysers]
        if text_needs(fewer, tokens).least(1) <= room:
            return f"set max_features={features}, or raise memory"
    return "raise memory, or train on fewer documents"
