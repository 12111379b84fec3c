"""The hierarchical label tree (HLT)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from treetop.errors import TreetopError
from treetop.features.hybrid import Features
from treetop.labels.kmeans import KMeans, balanced_clusters, even_edges, free_clusters
from treetop.labels.pifa import keep_largest


@dataclass(frozen=True)
class Tree:
    """Levels 1 to D of nodes; those of level D are the labels.

    Nodes of a level are numbered so that siblings are neighbours: the children of node p of level
    t - 1 are the nodes ``child_ptr[t-1][p]`` to ``child_ptr[t-1][p+1]`` of level t.
    """

    child_ptr: tuple[np.ndarray, ...]  # int64, one array a level
    label_of: np.ndarray  # int64, the label of each node of level D

    @property
    def depth(self) -> int:
        """D, the number of levels."""
        return len(self.child_ptr)

    @property
    def sizes(self) -> list[int]:
        """K[1] … K[D]."""
        return [int(pointers[-1]) for pointers in self.child_ptr]

    @cached_property
    def node_of(self) -> np.ndarray:
        """The node of level D of each label."""
        nodes = np.empty_like(self.label_of)
        nodes[self.label_of] = np.arange(nodes.size)
        return nodes

    def parents(self, level: int) -> np.ndarray:
        """The parent of each node of `level` (1 … D)."""
        pointers = self.child_ptr[level - 1]
        return np.repeat(np.arange(pointers.size - 1), np.diff(pointers))

    def C(self, level: int) -> sp.csr_matrix:
        """C[t], K[t] x K[t-1]: 1 where the node of level t is a child of the node of level t - 1."""
        parents = self.parents(level)
        size = parents.size
        shape = (size, self.child_ptr[level - 1].size - 1)
        return sp.csr_matrix((np.ones(size, np.float32), parents, np.arange(size + 1)), shape=shape)

    def arrays(self) -> dict[str, np.ndarray]:
        """All arrays by name."""
        levels = {f"child_ptr.{level}": pointers for level, pointers in enumerate(self.child_ptr)}
        return {"label_of": self.label_of, **levels}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> Tree:
        """The inverse of `arrays`."""
        depth = sum(name.startswith("child_ptr.") for name in arrays)
        return cls(tuple(arrays[f"child_ptr.{level}"] for level in range(depth)), arrays["label_of"])

    def __str__(self) -> str:
        return "-".join(map(str, self.sizes))


def flat(labels: int) -> Tree:
    """No clusters: every label is a child of the root (one-versus-all)."""
    return Tree((np.array([0, labels]),), np.arange(labels))


def from_parents(parents: Sequence[np.ndarray]) -> Tree:
    """The tree given by each node's parent, level by level, the labels' parents last.

    The first level needs no entry: its parent is the root. Nodes may be numbered in any way.
    """
    order = np.zeros(1, np.int64)
    pointers = []
    levels = [np.asarray(level, np.int64) for level in parents]
    if not levels or any(level.size == 0 for level in levels):
        raise TreetopError("a tree needs at least one level, and no level may be empty")
    tops = np.zeros(int(levels[0].max()) + 1, np.int64)
    for number, level in enumerate([tops, *levels]):
        if level.min() < 0 or level.max() >= order.size:
            raise TreetopError(
                f"tree level {number + 1}: a parent must be a number from 0 to {order.size - 1}"
            )
        place = np.empty(order.size, np.int64)
        place[order] = np.arange(order.size)
        following = np.argsort(place[level], kind="stable")
        counts = np.bincount(place[level], minlength=order.size)
        if (counts == 0).any():
            raise TreetopError(f"tree level {number}: node {order[counts.argmin()]} has no children")
        pointers.append(np.append(0, np.cumsum(counts)))
        order = following
    return Tree(tuple(pointers), order)


def balanced_tree(Z: Features, sizes: list[int], kmeans: KMeans) -> Tree:
    """HLT by recursive balanced k-means on label features: siblings differ by at most one in size."""
    Z = keep_largest(Z, kmeans.largest, kmeans.threads)
    groups = [np.arange(Z.rows)]
    pointers = []
    for level, size in enumerate(sizes):
        parts = np.diff(even_edges(size, len(groups)))
        how = kmeans._replace(seed=kmeans.seed + level)
        clusters = balanced_clusters(Z, groups, parts.tolist(), how)
        pointers.append(np.append(0, np.cumsum(parts)))
        groups = [cluster for family in clusters for cluster in family]
    return with_label_level(pointers, groups)


def free_tree(Z: Features, branching: int, leaf: int, kmeans: KMeans) -> Tree:
    """HLT by k-means without balance, as in Bonsai. A cluster of up to `leaf` labels is not cut."""
    Z = keep_largest(Z, kmeans.largest, kmeans.threads)
    groups = [np.arange(Z.rows)]
    pointers: list[np.ndarray] = []
    while max(group.size for group in groups) > leaf:
        families = []
        for number, group in enumerate(groups):
            cut = [group]
            if group.size > leaf:
                how = kmeans._replace(seed=kmeans.seed + 7919 * len(pointers) + number)
                cut = free_clusters(Z, group, branching, how)
            families.append(cut)
        if len(pointers) >= 8 and max(map(len, families)) == 1:
            break  # labels that no pass can tell apart
        pointers.append(np.append(0, np.cumsum([len(family) for family in families])))
        groups = [cluster for family in families for cluster in family]
    return with_label_level(pointers, groups)


def with_label_level(pointers: list[np.ndarray], groups: list[np.ndarray]) -> Tree:
    """Complete the upper levels by the labels themselves."""
    pointers = [*pointers, np.append(0, np.cumsum([group.size for group in groups]))]
    return Tree(tuple(pointers), np.concatenate(groups).astype(np.int64))
