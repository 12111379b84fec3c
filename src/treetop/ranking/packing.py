"""Smaller rankers: the smallest weights dropped, the others in 16 or 8 bits on disk.

In memory the search wants its own layout; a packed model is unpacked when it is loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from treetop.errors import TreetopError
from treetop.kernels.search import WIDTH
from treetop.labels.tree import Tree
from treetop.ranking.weights import ClusterWeights, Weights, assemble

STORAGES = ("float32", "float16", "int8")
BYTES = {"float16": 2, "int8": 1}


class Cells(NamedTuple):
    """All weights of words: a cell each, ordered by cluster, feature and child."""

    cluster: np.ndarray
    feature: np.ndarray
    child: np.ndarray
    value: np.ndarray

    def kept(self, mask: np.ndarray) -> Cells:
        """Some of the cells."""
        return Cells(*(part[mask] for part in self))

    def row_starts(self) -> np.ndarray:
        """Where another feature, or another cluster, begins."""
        clusters, features = (np.diff(part, prepend=-1) != 0 for part in (self.cluster, self.feature))
        return np.flatnonzero(clusters | features)


def within(sizes: np.ndarray) -> np.ndarray:
    """0 … n-1 for each size n, one after the other."""
    starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.asarray(np.arange(starts.size) - starts)


def cells_of(weights: Weights) -> Cells:
    """The inverse of `assemble`."""
    feature = np.repeat(np.arange(weights.row_ptr.size - 1), np.diff(weights.row_ptr))
    cluster, place = weights.rows[:, 0].astype(np.int64), weights.rows[:, 1].astype(np.int64)
    listed = place >= 0
    sizes = weights.pairs[place[listed], 0].astype(np.int64)
    at = np.repeat(place[listed] + 1, sizes) + within(sizes)
    parts = [
        Cells(
            np.repeat(cluster[listed], sizes),
            np.repeat(feature[listed], sizes),
            weights.pairs[at, 0].astype(np.int64),
            weights.pairs.view(np.float32)[at, 1],
        )
    ]
    full = ~listed
    vectors = -(-np.diff(weights.child_ptr)[cluster[full]] // WIDTH)
    inside = within(vectors)
    values = weights.full[np.repeat(-1 - place[full], vectors) + inside]
    row, lane = np.nonzero(values)
    parts.append(
        Cells(
            np.repeat(cluster[full], vectors)[row],
            np.repeat(feature[full], vectors)[row],
            WIDTH * inside[row] + lane,
            values[row, lane],
        )
    )
    made = Cells(*(np.concatenate([getattr(part, name) for part in parts]) for name in Cells._fields))
    return made.kept(np.lexsort((made.child, made.feature, made.cluster)))


def weights_from(cells: Cells, like: Weights, tree: Tree, features: int, threads: int) -> Weights:
    """Weights of these cells; dense columns and biases as in `like`."""
    clusters, width = [], dense_width(like)
    edges = np.searchsorted(cells.cluster, np.arange(like.child_ptr.size))
    for number, (start, end) in enumerate(zip(edges[:-1], edges[1:], strict=True)):
        first, last = like.child_ptr[number : number + 2]
        found, counts = np.unique(cells.feature[start:end], return_counts=True)
        clusters.append(
            ClusterWeights(
                features=found.astype(np.int32),
                ends=np.cumsum(counts),
                children=cells.child[start:end].astype(np.int32),
                values=np.ascontiguousarray(cells.value[start:end], np.float32),
                dense=like.dense[width * first : width * last].reshape(width, last - first),
                biases=like.biases[first:last],
            )
        )
    return assemble(clusters, tree, features, threads)


def dense_width(weights: Weights) -> int:
    """Dense columns of a ranker."""
    return weights.dense.size // max(1, int(weights.child_ptr[-1]))


def pack(weights: Weights, storage: str) -> dict[str, np.ndarray]:
    """Arrays of a packed ranker."""
    cells = cells_of(weights)
    starts = cells.row_starts()
    sizes = np.diff(starts, append=cells.cluster.size)
    if weights.largest > np.iinfo(np.uint16).max:
        raise TreetopError("a cluster has more than 65,535 children: it cannot be packed")
    values, scales = quantized(cells.value, cells.cluster, weights.child_ptr.size - 1, storage)
    nodes = np.repeat(np.arange(weights.child_ptr.size - 1), np.diff(weights.child_ptr))
    cluster_of = np.repeat(nodes, dense_width(weights))  # cluster by cluster, as `dense` is
    dense, dense_scales = quantized(weights.dense, cluster_of, weights.child_ptr.size - 1, storage)
    return {
        "packed.cluster_sizes": np.bincount(
            cells.cluster[starts], minlength=weights.child_ptr.size - 1
        ),
        "packed.features": cells.feature[starts].astype(np.int32),
        "packed.sizes": sizes.astype(np.uint16),
        "packed.children": cells.child.astype(np.uint16),
        "packed.values": values,
        "packed.scales": scales,
        "packed.dense": dense,
        "packed.dense_scales": dense_scales,
        "packed.biases": weights.biases,
        "packed.child_ptr": weights.child_ptr,
        "packed.level_ptr": weights.level_ptr,
        "packed.features_in_all": np.array([weights.row_ptr.size - 1]),
    }


def unpack(arrays: Mapping[str, np.ndarray], tree: Tree, threads: int) -> Weights:
    """The inverse of `pack`, up to rounding."""
    found = {name.removeprefix("packed."): np.asarray(value) for name, value in arrays.items()}
    row_clusters = np.repeat(np.arange(found["cluster_sizes"].size), found["cluster_sizes"])
    sizes = found["sizes"].astype(np.int64)
    cluster = np.repeat(row_clusters, sizes)
    nodes = np.repeat(np.arange(found["child_ptr"].size - 1), np.diff(found["child_ptr"]))
    width = found["dense"].size // max(1, nodes.size)
    cells = Cells(
        cluster,
        np.repeat(found["features"], sizes),
        found["children"],
        restored(found["values"], found["scales"], cluster),
    )
    dense = restored(found["dense"], found["dense_scales"], np.repeat(nodes, width))
    none = np.zeros((0, 2), np.int32)
    like = Weights(
        row_ptr=np.zeros(1, np.int64),
        rows=none,
        pairs=none,
        full=np.zeros((0, WIDTH), np.float32),
        dense=dense,
        biases=found["biases"],
        child_ptr=found["child_ptr"],
        level_ptr=found["level_ptr"],
    )
    return weights_from(cells, like, tree, int(found["features_in_all"][0]), threads)


def quantized(
    values: np.ndarray, cluster: np.ndarray, clusters: int, storage: str
) -> tuple[np.ndarray, np.ndarray]:
    """Values in fewer bits, and what an eight-bit step is worth in each cluster."""
    if storage == "float16":
        return values.astype(np.float16), np.zeros(0, np.float32)
    largest = np.zeros(clusters, np.float32)
    np.maximum.at(largest, cluster, np.abs(values))
    scales = np.maximum(largest, np.finfo(np.float32).tiny) / 127
    return np.rint(values / scales[cluster]).astype(np.int8), scales


def restored(values: np.ndarray, scales: np.ndarray, cluster: np.ndarray) -> np.ndarray:
    """Values as float32."""
    made = values.astype(np.float32)
    return made * scales[cluster] if scales.size else made


def packed_bytes(cells: Cells, storage: str) -> int:
    """What the cells take on disk."""
    return cells.row_starts().size * 6 + cells.value.size * (2 + BYTES[storage])


def largest_within(cells: list[Cells], room: int, storage: str) -> float:
    """The smallest threshold at which the weights above it take at most `room` bytes."""
    sizes = np.sort(np.concatenate([np.abs(one.value) for one in cells]))
    low, high = 0, sizes.size  # so many of the smallest are dropped
    while low < high:
        middle = (low + high) // 2
        least = sizes[middle] if middle < sizes.size else np.inf
        taken = sum(packed_bytes(one.kept(np.abs(one.value) >= least), storage) for one in cells)
        low, high = (middle + 1, high) if taken > room else (low, middle)
    return float(sizes[low]) if low < sizes.size else float("inf")
