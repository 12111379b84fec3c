"""Φ_tfidf of the training texts, within a limit of memory that is planned before the work."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import scipy.sparse as sp

from treetop.errors import TreetopError
from treetop.features.words.corpus import BLOCK_BYTES_PER_THREAD
from treetop.features.words.tfidf import Tfidf, fit_tfidf
from treetop.features.words.wanted import (
    FEWEST_PAIRS,
    OF_PAIR,
    OF_TOKEN_AND_THREAD,
    TextMemory,
)
from treetop.runtime import Runtime
from treetop.runtime.memory import memory_in_use, size_text
from treetop.settings.parts import Analyser

SAMPLED_TEXTS = 2000
WORD = re.compile(r"\w+")
# Bytes per character of the texts that are read at a time, per distinct token, and per feature while
# n-grams are chosen: what tables and arrays take at most, counted in the code.
OF_CHARACTER, OF_TOKEN, OF_FEATURE = 24, 200, 250
LEAST_KEPT = 16 << 20
# Of the free memory: token ids and rows of features, of each of which so much is kept.
SHARE_KEPT = 1 / 6


class TextNeeds(NamedTuple):
    """Bytes that text features take besides what is kept of the corpus."""

    fixed: int
    per_thread: int

    def with_threads(self, threads: int) -> int:
        """What so many threads take."""
        return self.fixed + threads * self.per_thread

    def least(self, threads: int) -> int:
        """What they take with as little as possible of the corpus in memory."""
        return self.with_threads(threads) + 2 * LEAST_KEPT


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
    tokens = sampled_words(texts) if isinstance(texts, Sequence) else 0
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
    kept = int(SHARE_KEPT * (room - needs.with_threads(threads)))
    most = TextMemory()
    return threads, TextMemory(max(LEAST_KEPT, min(most.kept, kept)), most.pairs, limit)


def text_needs(analysers: Sequence[Analyser], tokens: int) -> TextNeeds:
    """Estimate what analyzers take of texts with at least so many distinct words."""
    words = sum(analyser.unit == "word" for analyser in analysers)
    n_grams = any(analyser.ngrams[1] > 1 for analyser in analysers)
    features = sum(min(analyser.max_features or tokens, tokens) for analyser in analysers)
    per_thread = OF_CHARACTER * BLOCK_BYTES_PER_THREAD + OF_TOKEN_AND_THREAD * tokens
    per_thread += OF_PAIR * FEWEST_PAIRS * n_grams
    return TextNeeds(OF_TOKEN * tokens * words + OF_FEATURE * features, per_thread)


def sampled_words(texts: Sequence[Any]) -> int:
    """The number of distinct words in a sample of the texts.

    It is less than that of all texts, which only the first pass over them tells: what n-grams take is
    planned again when it is over.
    """
    step = max(1, len(texts) // SAMPLED_TEXTS)
    sample = (text for text in texts[::step] if isinstance(text, str))
    return len({word for text in sample for word in WORD.findall(text.lower())})


def fitting_features(analysers: Sequence[Analyser], tokens: int, room: int) -> str:
    """Which setting fits into so many bytes."""
    for features in (200_000, 50_000):
        fewer = [replace(analyser, max_features=features) for analyser in analysers]
        if text_needs(fewer, tokens).least(1) <= room:
            return f"set max_features={features}, or raise memory"
    return "raise memory, or train on fewer documents"
