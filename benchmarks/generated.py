"""Generates texts and labels with the counts of large public data sets.

    python benchmarks/generated.py amazon-670k FOLDER [--labels 100000] [--threads 2]

Labels are arranged in a hidden tree: groups, and groups of groups. Each has its own words, drawn from a
Zipf distribution, as labels have. A document has a label drawn by its popularity (Pareto), further
labels mostly of the same group, and words of its labels, their groups and of the whole vocabulary, with
function words between them. Label numbers are random, so a number says nothing about the tree. The
problem is the same on any number of threads, and no more than a block of documents per thread is in
memory. FOLDER gets train.txt, train.labels, Y.trn.npz and the same for 10,000 test documents.
"""

import argparse
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

TEST_DOCUMENTS = 10_000
WORDS_PER_BLOCK = 1 << 20
GROUPS_PER_GROUP = 50
# Words that a label, a group and a group of groups have of their own.
LABEL_WORDS, GROUP_WORDS, LARGE_GROUP_WORDS = 10, 60, 300
# Shares of a document's content words: of its labels, their groups, their groups of groups.
SHARES = np.cumsum([0.25, 0.25, 0.2])
SAME_GROUP = 0.85
FUNCTION_WORDS = 150
LETTERS, VOWELS = "bcdfghjklmnprstvwxyz", "aeiou"
SYLLABLES = [consonant + vowel for consonant in LETTERS for vowel in VOWELS]
DIGITS = 7


@dataclass(frozen=True)
class Counts:
    """Sizes of a data set."""

    labels: int
    documents: int
    words: int  # per document
    content: int  # of these, words that are no function words
    vocabulary: int
    drawn: float  # labels per document, with repetitions
    group: int  # labels per group

    def scaled(self, labels: int | None) -> "Counts":
        """The same with another number of labels, and documents in proportion."""
        if labels is None:
            return self
        return replace(self, labels=labels, documents=labels * self.documents // self.labels)


# Counts as in the tables of AttentionXML and the Extreme Classification Repository.
COUNTS = {
    "amazon-670k": Counts(670_091, 490_449, 247, 76, 135_909, 5.45, 50),
    "wiki-500k": Counts(501_070, 1_779_881, 809, 320, 2_381_304, 5.05, 50),
    "amazon-3m": Counts(2_812_281, 1_717_899, 104, 60, 337_067, 41.0, 200),
}


class Block(NamedTuple):
    """Consecutive documents."""

    texts: bytes
    names: bytes
    labels: np.ndarray  # int32
    sizes: np.ndarray  # int64, labels per document


def zipf(rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers below `count`, int32: the probability of r is about 1 / (r + 1) ln(count)."""
    return np.minimum(count ** rng.random(shape) - 1, count - 1).astype(np.int32)


def spelled(words: int) -> np.ndarray:
    """Each word with a space, as bytes: the more frequent ones, which come first, are shorter."""
    numbers, text = np.arange(words), np.array(SYLLABLES)
    first = text[numbers % 100]
    for power in (1, 2, 3):
        more = numbers >= 100**power
        first = np.char.add(np.where(more, text[numbers // 100**power % 100], ""), first)
    return np.char.add(first, " ").astype("S9")


class Problem:
    """The hidden tree, and documents drawn from it."""

    def __init__(self, counts: Counts, seed: int = 0) -> None:
        self.counts, self.seed = counts, seed
        rng = np.random.default_rng(seed)
        self.groups = -(-counts.labels // counts.group)
        large_groups = -(-self.groups // GROUPS_PER_GROUP)
        self.large_group_words = zipf(rng, counts.vocabulary, (large_groups, LARGE_GROUP_WORDS))
        self.group_words = zipf(rng, counts.vocabulary, (self.groups, GROUP_WORDS))
        self.label_words = zipf(rng, counts.vocabulary, (counts.labels, LABEL_WORDS))
        popularity = np.cumsum(rng.pareto(1.1, counts.labels) + 0.3)
        self.popularity = popularity / popularity[-1]
        self.numbers = rng.permutation(counts.labels).astype(np.int32)
        self.spelled = spelled(FUNCTION_WORDS + counts.vocabulary)

    def popular(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Labels drawn by their popularity."""
        return np.searchsorted(self.popularity, rng.random(count)).astype(np.int64)

    def labels_of(self, rng: np.random.Generator, documents: int) -> tuple[np.ndarray, np.ndarray]:
        """Labels as the tree numbers them, with repetitions, and where those of a document begin."""
        sizes = rng.poisson(self.counts.drawn - 1, documents) + 1
        starts = np.append(0, np.cumsum(sizes))
        first, group = self.popular(rng, documents), self.counts.group
        begin = np.repeat(first // group * group, sizes)
        near = begin + (group * rng.random(starts[-1]) ** 2).astype(np.int64)
        near = np.minimum(near, self.counts.labels - 1)
        same = rng.random(starts[-1]) < SAME_GROUP
        labels = np.where(same, near, self.popular(rng, int(starts[-1])))
        labels[starts[:-1]] = first
        return labels, starts

    def content_of(
        self, rng: np.random.Generator, labels: np.ndarray, starts: np.ndarray
    ) -> np.ndarray:
        """Content words of documents with these labels: (documents, counts.content)."""
        shape = (starts.size - 1, self.counts.content)
        chosen = (rng.random(shape) * np.diff(starts)[:, None]).astype(np.int64)
        of = labels[starts[:-1, None] + chosen]
        kind, place = np.searchsorted(SHARES, rng.random(shape)), rng.random(shape)
        words = zipf(rng, self.counts.vocabulary, shape)
        group = of // self.counts.group
        for number, (own, node) in enumerate(
            (
                (self.label_words, of),
                (self.group_words, group),
                (self.large_group_words, group // GROUPS_PER_GROUP),
            )
        ):
            here = kind == number
            words[here] = own[node[here], (place[here] * own.shape[1]).astype(np.int64)]
        return words

    def block(self, task: tuple[int, int, int]) -> Block:
        """Documents of a block: its split, its number in the split, and how many there are."""
        split, number, documents = task
        rng = np.random.default_rng((self.seed, split, number))
        labels, starts = self.labels_of(rng, documents)
        words = zipf(rng, FUNCTION_WORDS, (documents, self.counts.words))
        places = np.arange(self.counts.content) * self.counts.words // self.counts.content
        words[:, places] = FUNCTION_WORDS + self.content_of(rng, labels, starts)
        lines = np.full((documents, self.counts.words + 1), b"\n", self.spelled.dtype)
        lines[:, :-1] = self.spelled[words]
        texts = lines.tobytes().translate(None, b"\0").replace(b" \n", b"\n")
        return Block(texts, *self.named(labels, starts))

    def named(self, labels: np.ndarray, starts: np.ndarray) -> tuple[bytes, np.ndarray, np.ndarray]:
        """Lines of label names, and the labels and how many each document has, without repetitions."""
        rows = np.repeat(np.arange(starts.size - 1), np.diff(starts))
        shape = (starts.size - 1, self.counts.labels)
        Y = sp.csr_matrix((np.ones(rows.size, np.float32), (rows, self.numbers[labels])), shape)
        Y.sum_duplicates()
        cells = np.empty((Y.nnz, DIGITS + 1), np.uint8)
        cells[:, :DIGITS] = Y.indices[:, None] // 10 ** np.arange(DIGITS)[::-1] % 10 + ord("0")
        cells[:, DIGITS] = ord("\t")
        cells[Y.indptr[1:] - 1, DIGITS] = ord("\n")
        return cells.tobytes(), Y.indices.astype(np.int32), np.diff(Y.indptr).astype(np.int64)


def blocks(problem: Problem, split: int, documents: int, threads: int) -> Iterator[Block]:
    """All blocks of a split in their order; as many as threads are in memory."""
    size = max(1, WORDS_PER_BLOCK // problem.counts.words)
    starts = range(0, documents, size)
    tasks = [(split, number, min(size, documents - at)) for number, at in enumerate(starts)]
    with ThreadPoolExecutor(threads) as pool:
        for first in range(0, len(tasks), threads):
            yield from pool.map(problem.block, tasks[first : first + threads])


def write_split(
    folder: Path, name: str, short: str, shape: tuple[int, int], parts: Iterator[Block]
) -> None:
    """Write texts, labels and the matrix of labels, block by block."""
    sizes = [np.zeros(1, np.int64)]
    columns = folder / f"{short}.columns"
    with (
        (folder / f"{name}.txt").open("wb") as texts,
        (folder / f"{name}.labels").open("wb") as names,
        columns.open("wb") as indices,
    ):
        for block in parts:
            texts.write(block.texts)
            names.write(block.names)
            indices.write(block.labels.tobytes())
            sizes.append(block.sizes)
    indptr = np.cumsum(np.concatenate(sizes))
    Y = sp.csr_matrix(shape, dtype=np.float32)
    Y.indptr, Y.indices = indptr, np.memmap(columns, np.int32, "r")
    Y.data = np.ones(int(indptr[-1]), np.float32)
    sp.save_npz(folder / f"Y.{short}.npz", Y, compressed=False)
    columns.unlink()


def generate(name: str, folder: Path, labels: int | None = None, threads: int = 2) -> Counts:
    """Write a problem into a folder, unless it is there."""
    counts = COUNTS[name].scaled(labels)
    if (folder / "generated").exists():
        return counts
    folder.mkdir(parents=True, exist_ok=True)
    problem = Problem(counts)
    for split, (title, short, documents) in enumerate(
        (("train", "trn", counts.documents), ("test", "tst", TEST_DOCUMENTS))
    ):
        parts = blocks(problem, split, documents, threads)
        write_split(folder, title, short, (documents, counts.labels), parts)
    (folder / "generated").touch()
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problem", choices=COUNTS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--labels", type=int)
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    print(generate(given.problem, given.folder, given.labels, given.threads))


if __name__ == "__main__":
    main()
