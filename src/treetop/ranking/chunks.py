"""Weights on their way from the solver to the layout that beam search reads.

Each cluster is a chunk of a temporary file as soon as it is solved, in as few bits as it will have. In
the end the chunks are exchanged for rows by feature, a range of features at a time. So neither all
clusters nor all rows are ever in memory. The chunks follow from the data alone, whatever solves them
and in whichever order.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from treetop.errors import TreetopError
from treetop.kernels import placing, words
from treetop.labels.tree import Tree
from treetop.ranking.weights import ClusterWeights, Weights, weight_form
from treetop.runtime import parallel
from treetop.runtime.failpoints import failpoint
from treetop.runtime.spool import ArrayFile, NewArray, damaged

# Bytes of rows and cells that a thread arranges at a time; more if there would be too many parts, as
# each of them reads a piece of every chunk.
PART, MOST_PARTS = 64 << 20, 64
# Arrays of weights up to this many bytes are in memory, in huge pages, which search reads faster than
# those of a file.
IN_MEMORY = 256 << 20
# Bytes per row and per cell.
ROW, CELL = 8, 2


class Chunk(NamedTuple):
    """Where the weights of a cluster are in the file, in bytes, and how many."""

    cluster: int
    entries: tuple[int, int]  # int32 pairs: features and marks, see `treetop.kernels.words`
    words: tuple[int, int]  # uint16
    dense: tuple[int, int]  # float32
    biases: np.ndarray
    checksum: int  # of all but the biases


class Chunks:
    """The weights of clusters, numbered across all levels. Threads may add them in any order."""

    def __init__(self, features: int, form: np.ndarray) -> None:
        self.form = form
        self._file, self._lock = ArrayFile(), threading.Lock()
        self._chunks: list[Chunk] = []
        self._counts = np.zeros((features, 2), np.int64)  # rows and cells of each feature

    def add(self, cluster: int, weights: ClusterWeights) -> None:
        """Write the weights of a cluster."""
        features, ends, children, values, dense, biases = weights
        order = np.argsort(features)
        entries = np.empty((features.size, 2), np.int32)
        entries[:, 0] = features[order]
        starts = np.append(0, ends[:-1])[order] if features.size else ends
        cells = (starts, ends[order], children, values.view(np.uint32))
        form = self.form.tolist()
        own = np.zeros(words.mark_features(*cells, biases.size, *form, entries), np.uint16)
        words.write_words(*cells, *form, entries, own)
        chunk = Chunk(
            cluster,
            entries=(self._file.append(entries), len(entries)),
            words=(self._file.append(own), own.size),
            dense=(self._file.append(dense), dense.size),
            biases=biases,
            checksum=chunk_checksum(entries, own, dense),
        )
        with self._lock:
            placing.count_entries(entries, self._counts)
            self._chunks.append(chunk)

    def assembled(self, tree: Tree, threads: int) -> Weights:
        """Lay out the clusters of the first levels of a tree for beam search."""
        chunks = sorted(self._chunks, key=lambda chunk: chunk.cluster)
        failpoint("chunks", file=self._file.path)
        starts = np.zeros((len(self._counts) + 1, 2), np.int64)
        np.cumsum(self._counts, axis=0, out=starts[1:])
        if np.diff(starts[:, 1]).max(initial=0) > np.iinfo(np.int32).max // 2:
            raise TreetopError(
                "a feature has more than a billion weights: raise prune_below or set max_weights"
            )
        rows, cells = self._by_feature(chunks, starts, threads)
        return Weights(
            starts,
            rows,
            cells,
            self.form,
            dense=self._dense(chunks),
            biases=np.concatenate([chunk.biases for chunk in chunks]),
            child_ptr=np.append(0, np.cumsum([chunk.biases.size for chunk in chunks])),
            level_ptr=np.append(0, np.cumsum([level.size - 1 for level in tree.child_ptr])),
        )

    def _by_feature(
        self, chunks: list[Chunk], starts: np.ndarray, threads: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Arrange all entries in rows and cells by feature."""
        edges = part_edges(starts, threads)
        places = np.empty((len(chunks), edges.size, 2), np.int64)
        rows, cells = (
            NewArray((int(starts[-1, 0]), 2), np.int32, IN_MEMORY),
            NewArray((int(starts[-1, 1]),), np.uint16, IN_MEMORY),
        )

        def cut(span: tuple[int, int], _: np.ndarray) -> None:
            for number in range(*span):
                entries = self._entries(chunks[number], 0, None)
                self._check(chunks[number], entries)
                placing.cut_entries(entries, edges, places[number])

        def place(part: int, cancel: np.ndarray) -> None:
            first, last = edges[part : part + 2]
            own = starts[first : last + 1] - starts[first]
            cursors, (row_count, cell_count) = own.copy(), own[-1].tolist()
            own_rows = np.empty((row_count, 2), np.int32)
            own_cells = np.empty(cell_count, np.uint16)
            for chunk, (start, end) in zip(chunks, places[:, part : part + 2].tolist(), strict=True):
                if cancel[0]:
                    return
                if start[0] < end[0]:
                    entries = self._entries(chunk, start[0], end[0])
                    own_words = self._file.read(
                        chunk.words[0] + CELL * start[1], end[1] - start[1], np.uint16
                    )
                    placing.place_entries(
                        entries, own_words, chunk.cluster, first, own, cursors, own_rows, own_cells
                    )
            rows.write(int(starts[first, 0]), own_rows)
            cells.write(int(starts[first, 1]), own_cells)

        parallel.run(cut, parallel.ranges(len(chunks), threads), threads)
        parallel.run(place, range(edges.size - 1), threads)
        return rows.finished(), cells.finished()

    def _check(self, chunk: Chunk, entries: np.ndarray) -> None:
        """Raise unless the file still has what was written to it."""
        own = self._file.read(*chunk.words, np.uint16)
        dense = self._file.read(*chunk.dense, np.float32)
        if chunk_checksum(entries, own, dense) != chunk.checksum:
            raise damaged()

    def _entries(self, chunk: Chunk, first: int, last: int | None) -> np.ndarray:
        """Some of the entries of a chunk."""
        offset, count = chunk.entries
        count = (count if last is None else last) - first
        return self._file.read(offset + ROW * first, 2 * count, np.int32).reshape(-1, 2)

    def _dense(self, chunks: list[Chunk]) -> np.ndarray:
        """The dense weights of all clusters, one after the other."""
        dense, at = NewArray((sum(chunk.dense[1] for chunk in chunks),), np.float32), 0
        for chunk in chunks:
            offset, count = chunk.dense
            if count:
                dense.write(at, self._file.read(offset, count, np.float32))
            at += count
        return dense.finished()


def chunk_checksum(*arrays: np.ndarray) -> int:
    """Compute a checksum of the bytes of arrays."""
    value = 0
    for array in arrays:
        value = zlib.crc32(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data, value)
    return value


def part_edges(starts: np.ndarray, threads: int) -> np.ndarray:
    """Divide the features into ranges of about `PART` bytes: their edges, int64."""
    sizes = starts @ np.array([ROW, CELL])
    parts = max(threads, min(-(-int(sizes[-1]) // PART), MOST_PARTS))
    inner = np.searchsorted(sizes, np.linspace(0, sizes[-1], parts + 1)[1:-1])
    return np.unique(np.concatenate([[0], inner, [len(starts) - 1]]))


def assemble(
    clusters: Iterable[ClusterWeights],
    tree: Tree,
    features: int,
    threads: int,
    weight_type: str = "float32",
) -> Weights:
    """Lay out the clusters of the first levels, in order, for beam search."""
    listed = list(clusters)
    largest = max(cluster.biases.size for cluster in listed)
    chunks = Chunks(features, weight_form(weight_type, largest))
    for number, cluster in enumerate(listed):
        chunks.add(number, cluster)
    return chunks.assembled(tree, threads)
