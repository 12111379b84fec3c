"""Weights of the rankers of all levels, in the layout that beam search reads."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from treetop.errors import TreetopError
from treetop.kernels import placing
from treetop.kernels.products import WIDTH
from treetop.labels.tree import Tree
from treetop.runtime import parallel


class ClusterWeights(NamedTuple):
    """Weights of the children of one cluster, ordered by feature."""

    features: np.ndarray  # int32
    ends: np.ndarray  # int64, end of each feature in `children` and `values`
    children: np.ndarray  # int32, numbers within the cluster
    values: np.ndarray  # float32
    dense: np.ndarray  # float32, (dense columns, children)
    biases: np.ndarray  # float32


class LabelWeights(NamedTuple):
    """A linear score of each label that uses the dense columns alone."""

    weight: np.ndarray  # float32, (labels, dense columns)
    bias: np.ndarray  # float32


@dataclass(frozen=True)
class Weights:
    """W[1] … W[t], ordered by feature. Clusters and nodes are numbered across all levels."""

    row_ptr: np.ndarray  # int64, start of the row of each feature, and the end
    rows: np.ndarray  # int32 pairs: clusters in which the feature has weights, ascending, and p:
    #   p >= 0: pairs[p, 0] weights follow in `pairs`; p < 0: vectors from full[-1 - p] on
    pairs: np.ndarray  # int32 pairs: number of the child within its cluster, bits of a float32
    full: np.ndarray  # float32, vectors of 16 weights, used where most children have one
    dense: np.ndarray  # float32, (dense columns, children) of each cluster in turn
    biases: np.ndarray  # float32, by node
    child_ptr: np.ndarray  # int64, start of the nodes of each cluster, and the end
    level_ptr: np.ndarray  # int64, start of the clusters of each level, and the end

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays by name, for a file."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached_property
    def for_search(self) -> tuple[np.ndarray, ...]:
        """The arguments of the kernel, in order; `pairs` both as integers and as floats."""
        return (
            self.row_ptr,
            self.rows,
            self.pairs,
            self.pairs.view(np.float32),
            self.full,
            self.dense,
            self.biases,
            self.child_ptr,
            self.level_ptr,
        )

    def times(self, factor: float) -> Weights:
        """Multiply the weights of sparse features by `factor`."""
        pairs = self.pairs.copy()
        pairs.view(np.float32)[:, 1] *= np.float32(factor)  # pairs that hold a count have 0 there
        return replace(self, pairs=pairs, full=np.float32(factor) * self.full)

    @cached_property
    def largest(self) -> int:
        """The size of the largest cluster."""
        return int(np.diff(self.child_ptr).max())

    @cached_property
    def parent_of(self) -> np.ndarray:
        """The parent of each node, numbered across all levels; -1 is the root."""
        sizes = np.diff(self.child_ptr)
        return np.repeat(np.arange(sizes.size) - 1, sizes)


def with_share(
    clusters: list[ClusterWeights], tree: Tree, other: LabelWeights, share: float
) -> list[ClusterWeights]:
    """Blend another score into the clusters of the labels: (1 - share)·own + share·other."""
    own, ends = np.float32(1 - share), tree.child_ptr[-1]
    weight, bias = np.float32(share) * other.weight, np.float32(share) * other.bias
    labels = (tree.label_of[start:end] for start, end in zip(ends[:-1], ends[1:], strict=True))
    return [
        cluster._replace(
            values=own * cluster.values,
            dense=own * cluster.dense + weight[members].T,
            biases=own * cluster.biases + bias[members],
        )
        for cluster, members in zip(clusters, labels, strict=True)
    ]


def merge_blocks(parts: list[ClusterWeights]) -> ClusterWeights:
    """Merge blocks of consecutive children into one cluster."""
    if len(parts) == 1:
        return parts[0]
    shifts = np.append(0, np.cumsum([part.biases.size for part in parts]))[:-1]
    features = np.concatenate(
        [np.repeat(part.features, np.diff(part.ends, prepend=0)) for part in parts]
    )
    children = np.concatenate(
        [part.children + shift for part, shift in zip(parts, shifts, strict=True)]
    )
    values = np.concatenate([part.values for part in parts])
    order = np.argsort(features, kind="stable")
    distinct, counts = np.unique(features, return_counts=True)
    return ClusterWeights(
        features=distinct,
        ends=np.cumsum(counts),
        children=children[order].astype(np.int32),
        values=values[order],
        dense=np.concatenate([part.dense for part in parts], axis=1),
        biases=np.concatenate([part.biases for part in parts]),
    )


def assemble(clusters: list[ClusterWeights], tree: Tree, features: int, threads: int) -> Weights:
    """Lay out the clusters of the first levels, in order, for beam search."""
    counts = np.bincount(np.concatenate([cluster.features for cluster in clusters]), minlength=features)
    row_ptr = np.append(0, np.cumsum(counts))
    rows, pair_count, vector_count = row_layout(clusters, row_ptr)
    weights = Weights(
        row_ptr,
        rows,
        pairs=np.zeros((pair_count, 2), np.int32),
        full=np.zeros((vector_count, WIDTH), np.float32),
        dense=np.concatenate([cluster.dense.ravel() for cluster in clusters]),
        biases=np.concatenate([cluster.biases for cluster in clusters]),
        child_ptr=np.append(0, np.cumsum([cluster.biases.size for cluster in clusters])),
        level_ptr=np.append(0, np.cumsum([level.size - 1 for level in tree.child_ptr])),
    )
    cursor = row_ptr[:-1].copy()  # next position in the row of each feature
    pair_values = weights.pairs.view(np.float32)

    def place(span: tuple[int, int], _: np.ndarray) -> None:
        for cluster in clusters:
            placing.place_values(
                *cluster[:4],
                *span,
                weights.rows,
                cursor,
                weights.pairs,
                pair_values,
                weights.full,
            )

    parallel.run(place, parallel.ranges(features, threads), threads)
    return weights


def row_layout(clusters: list[ClusterWeights], row_ptr: np.ndarray) -> tuple[np.ndarray, int, int]:
    """Return the `rows` of `Weights`, and the number of pairs and of full vectors."""
    rows = np.empty((int(row_ptr[-1]), 2), np.int32)
    sizes = np.empty(len(rows), np.int64)
    cursor = row_ptr[:-1].copy()
    for number, (features, ends, _, _, _, biases) in enumerate(clusters):
        placing.place_cluster(features, ends, number, biases.size, cursor, rows, sizes)
    pair_ptr = np.append(0, np.cumsum(np.where(sizes < 0, 0, sizes + 1)))
    full_ptr = np.append(0, np.cumsum(np.maximum(-sizes, 0)))
    if max(pair_ptr[-1], full_ptr[-1]) > np.iinfo(np.int32).max:
        raise TreetopError(
            "the model has more than two billion weights: raise prune_below or set max_weights"
        )
    rows[:, 1] = np.where(sizes < 0, -1 - full_ptr[:-1], pair_ptr[:-1])
    return rows, int(pair_ptr[-1]), int(full_ptr[-1])
