"""Weights of the rankers of all levels, in the layout that beam search reads."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import NamedTuple

import numpy as np


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
    """W[1] … W[t], ordered by feature. Clusters and nodes are numbered across all levels.

    The row of a feature has a pair of numbers for each cluster in which the feature has weights: the
    cluster, ascending, and p. With p < 0 there is a single weight, which p itself holds. Otherwise p
    // 2 counts the cells from the first one of the feature to its weights for this cluster: a list of
    children and values or, if p is odd, a value for every child. `treetop.kernels.words` has the
    details.
    """

    starts: np.ndarray  # int64 pairs: where the row and the cells of each feature begin, and the end
    rows: np.ndarray  # int32 pairs: cluster and p
    cells: np.ndarray  # uint16
    form: np.ndarray  # int64 pair: words per child and per value; see `weight_form`
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
        """The arguments of the kernel, in order."""
        return tuple(self.arrays.values())

    @property
    def features(self) -> int:
        """The number of sparse features."""
        return len(self.starts) - 1

    @cached_property
    def largest(self) -> int:
        """The size of the largest cluster."""
        return int(np.diff(self.child_ptr).max())

    @cached_property
    def parent_of(self) -> np.ndarray:
        """The parent of each node, numbered across all levels; -1 is the root."""
        sizes = np.diff(self.child_ptr)
        return np.repeat(np.arange(sizes.size) - 1, sizes)


def weight_form(weight_type: str, largest: int) -> np.ndarray:
    """Return the `form` of weights of a type, float32 or bfloat16; `largest` is that of `Weights`."""
    return np.array([1 if largest <= 1 << 16 else 2, 1 if weight_type == "bfloat16" else 2])


def with_share(
    cluster: ClusterWeights, labels: np.ndarray, other: LabelWeights, share: float
) -> ClusterWeights:
    """Blend another score into a cluster of these labels: (1 - share)·own + share·other."""
    own = np.float32(1 - share)
    return cluster._replace(
        values=own * cluster.values,
        dense=own * cluster.dense + np.float32(share) * other.weight[labels].T,
        biases=own * cluster.biases + np.float32(share) * other.bias[labels],
    )


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
