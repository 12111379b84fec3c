"""Compressed storage of rankers: small weights dropped, the others in 16 or 8 bits.

Beam search uses a different layout, so a packed model is unpacked when it is loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from treetop.errors import TreetopError
from treetop.kernels import lookup
from treetop.labels.tree import Tree
from treetop.ranking.checking import check_packed
from treetop.ranking.chunks import assemble
from treetop.ranking.weights import ClusterWeights, Weights, weight_form
from treetop.runtime import parallel
from treetop.runtime.arrays import part, prefixed

STORAGES = ("float32", "float16", "int8")
BYTES = {"float16": 2, "int8": 1}


class Cells(NamedTuple):
    """All weights of sparse features, ordered by cluster, feature and child."""

    cluster: np.ndarray
    feature: np.ndarray
    child: np.ndarray
    value: np.ndarray

    def kept(self, mask: np.ndarray) -> Cells:
        """Return the cells selected by `mask`."""
        return Cells(*(part[mask] for part in self))

    def row_starts(self) -> np.ndarray:
        """Return the positions at which a new feature or a new cluster begins."""
        new_cluster = np.diff(self.cluster, prepend=-1) != 0
        return np.flatnonzero(new_cluster | (np.diff(self.feature, prepend=-1) != 0))


def cells_of(weights: Weights, threads: int = 1) -> Cells:
    """Extract the weights of sparse features: the inverse of `assemble`."""
    arrays = (*weights.for_search[:4], weights.child_ptr, weights.largest)
    spans = parallel.ranges(weights.features, threads)

    def listed(number: int, size: int) -> tuple[int, list[np.ndarray]]:
        parts = [np.empty(size, dtype) for dtype in (np.int32, np.int32, np.int32, np.float32)]
        return int(lookup.list_weights(*arrays, *spans[number], *parts)), parts

    def work(number: int, _: np.ndarray) -> list[np.ndarray]:
        count, _none = listed(number, 0)
        return listed(number, count)[1]

    parts = parallel.run(work, range(len(spans)), threads)
    feature, cluster, child, value = (np.concatenate(own) for own in zip(*parts, strict=True))
    cells = Cells(cluster, feature, child, value)
    return cells.kept(np.lexsort((cells.child, cells.feature, cells.cluster)))


def weights_from(cells: Cells, like: Weights, tree: Tree, features: int, threads: int) -> Weights:
    """Assemble weights from cells; dense columns and biases are those of `like`."""
    clusters, width = [], dense_width(like)
    edges = np.searchsorted(cells.cluster, np.arange(like.child_ptr.size))
    for number, (start, end) in enumerate(zip(edges[:-1], edges[1:], strict=True)):
        first, last = like.child_ptr[number : number + 2]
        distinct, counts = np.unique(cells.feature[start:end], return_counts=True)
        clusters.append(
            ClusterWeights(
                features=distinct.astype(np.int32),
                ends=np.cumsum(counts),
                children=cells.child[start:end].astype(np.int32),
                values=np.ascontiguousarray(cells.value[start:end], np.float32),
                dense=like.dense[width * first : width * last].reshape(width, last - first),
                biases=like.biases[first:last],
            )
        )
    return assemble(clusters, tree, features, threads)


def dense_width(weights: Weights) -> int:
    """Return the number of dense columns."""
    return weights.dense.size // max(1, int(weights.child_ptr[-1]))


def pack(weights: Weights, storage: str) -> dict[str, np.ndarray]:
    """Convert weights to the arrays of a packed ranker, by name; `storage`: float16 or int8."""
    if weights.largest > np.iinfo(np.uint16).max:
        raise TreetopError("a cluster has more than 65,535 children: it cannot be packed")
    cells, clusters = cells_of(weights), weights.child_ptr.size - 1
    starts = cells.row_starts()
    values, scales = quantized(cells.value, cells.cluster, clusters, storage)
    cluster_of_node = np.repeat(np.arange(clusters), np.diff(weights.child_ptr))
    cluster_of_dense = np.repeat(cluster_of_node, dense_width(weights))
    dense, dense_scales = quantized(weights.dense, cluster_of_dense, clusters, storage)
    arrays = {
        "cluster_sizes": np.bincount(cells.cluster[starts], minlength=clusters),
        "features": cells.feature[starts].astype(np.int32),
        "sizes": np.diff(starts, append=cells.cluster.size).astype(np.uint16),
        "children": cells.child.astype(np.uint16),
        "values": values,
        "scales": scales,
        "dense": dense,
        "dense_scales": dense_scales,
        "biases": weights.biases,
        "child_ptr": weights.child_ptr,
        "level_ptr": weights.level_ptr,
        "features_in_all": np.array([weights.features]),
    }
    return prefixed("packed", arrays)


def unpack(
    arrays: Mapping[str, np.ndarray], tree: Tree, widths: tuple[int, int], storage: str, threads: int
) -> Weights:
    """Restore weights from the arrays of a packed ranker: the inverse of `pack`, up to rounding.

    The arrays may be from a stranger. `widths` are the columns of both halves of the features.
    """
    packed = check_packed(part(arrays, "packed"), storage, tree, widths, threads)
    row_clusters = np.repeat(np.arange(packed["cluster_sizes"].size), packed["cluster_sizes"])
    sizes = packed["sizes"].astype(np.int64)
    cluster = np.repeat(row_clusters, sizes)
    cells = Cells(
        cluster,
        np.repeat(packed["features"], sizes),
        packed["children"],
        restored(packed["values"], packed["scales"], cluster),
    )
    nodes = np.repeat(np.arange(packed["child_ptr"].size - 1), np.diff(packed["child_ptr"]))
    cluster_of_dense = np.repeat(nodes, packed["dense"].size // max(1, nodes.size))
    without_cells = Weights(
        starts=np.zeros((1, 2), np.int64),
        rows=np.zeros((0, 2), np.int32),
        cells=np.zeros(0, np.uint16),
        form=weight_form("float32", 1),
        dense=restored(packed["dense"], packed["dense_scales"], cluster_of_dense),
        biases=packed["biases"],
        child_ptr=packed["child_ptr"],
        level_ptr=packed["level_ptr"],
    )
    return weights_from(cells, without_cells, tree, int(packed["features_in_all"][0]), threads)


def quantized(
    values: np.ndarray, cluster: np.ndarray, clusters: int, storage: str
) -> tuple[np.ndarray, np.ndarray]:
    """Convert values to fewer bits; for int8 also return the step size of each cluster."""
    if storage == "float16":
        return values.astype(np.float16), np.zeros(0, np.float32)
    largest = np.zeros(clusters, np.float32)
    np.maximum.at(largest, cluster, np.abs(values))
    scales = np.maximum(largest, np.finfo(np.float32).tiny) / 127
    return np.rint(values / scales[cluster]).astype(np.int8), scales


def restored(values: np.ndarray, scales: np.ndarray, cluster: np.ndarray) -> np.ndarray:
    """Convert quantized values back to float32."""
    floats = values.astype(np.float32)
    return floats * scales[cluster] if scales.size else floats


def packed_bytes(cells: Cells, storage: str) -> int:
    """Return the size of the cells on disk."""
    return cells.row_starts().size * 6 + cells.value.size * (2 + BYTES[storage])


def largest_within(rankers: list[Cells], room: int, storage: str) -> float:
    """Return the smallest threshold such that weights of at least that size fit into `room` bytes."""
    sizes = np.sort(np.concatenate([np.abs(cells.value) for cells in rankers]))
    low, high = 0, sizes.size  # number of weights to drop
    while low < high:
        middle = (low + high) // 2
        kept = (cells.kept(np.abs(cells.value) >= sizes[middle]) for cells in rankers)
        if sum(packed_bytes(cells, storage) for cells in kept) > room:
            low = middle + 1
        else:
            high = middle
    return float(sizes[low]) if low < sizes.size else float("inf")
