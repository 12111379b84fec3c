"""The hierarchical label tree (HLT)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from treetop.errors import TreetopError
from treetop.features.hybrid import Features
from treetop.labels.kmeans import KMeans, balanced_clusters, even_edges, free_clusters
from treetop.labels.pifa import keep_largest
from treetop.runtime import parallel
from treetop.runtime.anywhere import run_anywhere
from treetop.runtime.checking import Column, Sizes, check_arrays

# Upper levels are built with few features per label, until no subtree has more labels than this.
LABELS_PER_WAVE = 65_536


class Waves(NamedTuple):
    """Label features Z that are too many to be in memory at once."""

    upper: Features  # few features of each label, for the upper levels
    of: Callable[[np.ndarray], Features]  # the features of some labels


@dataclass(frozen=True)
class Tree:
    """A tree with nodes on levels 1 to D; the nodes of level D are the labels.

    The nodes of a level are numbered so that siblings are consecutive: the children of node p of level
    t - 1 are the nodes ``child_ptr[t-1][p]`` to ``child_ptr[t-1][p+1]`` of level t.
    """

    child_ptr: tuple[np.ndarray, ...]  # int64, one array per level
    label_of: np.ndarray  # int64, the label of each node of level D

    @property
    def depth(self) -> int:
        """D, the number of levels."""
        return len(self.child_ptr)

    @cached_property
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
        """The arrays of the tree by name, for a file."""
        levels = {f"child_ptr.{level}": pointers for level, pointers in enumerate(self.child_ptr)}
        return {"label_of": self.label_of, **levels}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> Tree:
        """The inverse of `arrays`, which may be from a stranger."""
        sizes: Sizes = {"nodes_0": 1}
        columns, depth = {}, 0
        while (name := f"child_ptr.{depth}") in arrays:
            depth += 1
            if arrays[name].size:
                sizes[f"nodes_{depth}"] = int(arrays[name].flat[-1])
            columns[name] = Column("int64", (f"nodes_{depth - 1}+1",), ends_at=f"nodes_{depth}")
        if sizes.get(f"nodes_{depth}", 0) < 1 or depth == 0:
            raise TreetopError("the label tree is empty")
        leaves = f"nodes_{depth}"
        columns["label_of"] = Column("int64", (leaves,), below=leaves, distinct=True)
        checked = check_arrays(arrays, columns, sizes)
        return cls(tuple(checked[f"child_ptr.{level}"] for level in range(depth)), checked["label_of"])

    def __str__(self) -> str:
        return "-".join(map(str, self.sizes))

    def __repr__(self) -> str:
        return f"<Tree: {self}>"


def flat(labels: int) -> Tree:
    """Return a tree without clusters: every label is a child of the root (one-versus-all)."""
    return Tree((np.array([0, labels]),), np.arange(labels))


def from_parents(parents: Sequence[np.ndarray]) -> Tree:
    """Construct a tree from the parent of each node, level by level; the last level is the labels.

    The first level needs no entry, because its parent is the root. Nodes may be numbered in any order.
    """
    order = np.zeros(1, np.int64)
    pointers = []
    levels = [np.asarray(level, np.int64) for level in parents]
    if not levels or any(level.size == 0 for level in levels):
        raise TreetopError("a tree must have at least one level, and no level may be empty")
    first_level = np.zeros(int(levels[0].max()) + 1, np.int64)
    for number, level in enumerate([first_level, *levels]):
        if level.min() < 0 or level.max() >= order.size:
            raise TreetopError(
                f"tree level {number + 1}: a parent must be a number from 0 to {order.size - 1}"
            )
        position = np.empty(order.size, np.int64)
        position[order] = np.arange(order.size)
        following = np.argsort(position[level], kind="stable")
        counts = np.bincount(position[level], minlength=order.size)
        if (counts == 0).any():
            raise TreetopError(f"tree level {number}: node {order[counts.argmin()]} has no children")
        pointers.append(np.append(0, np.cumsum(counts)))
        order = following
    return Tree(tuple(pointers), order)


def balanced_tree(Z: Features | Waves, sizes: list[int], kmeans: KMeans) -> Tree:
    """Build the HLT by recursive balanced k-means: the sizes of siblings differ by at most one."""
    # Where the children of each node begin is known before any label has a place.
    counts = [1, *sizes]
    pointers = [even_edges(size, count) for count, size in pairwise(counts)]
    if isinstance(Z, Waves):
        groups = clusters_in_waves(Z, pointers, kmeans)
    else:
        Z = keep_largest(Z, kmeans.largest, kmeans.threads)
        groups = split(Z, [np.arange(Z.rows)], pointers, kmeans)
    return with_label_level(pointers, groups)


def split(
    Z: Features, groups: list[np.ndarray], pointers: Sequence[np.ndarray], kmeans: KMeans
) -> list[np.ndarray]:
    """Split groups of labels level by level, into as many clusters as the nodes have children."""
    for level, edges in enumerate(pointers):
        seeded = kmeans._replace(seed=kmeans.seed + level)
        clusters = balanced_clusters(Z, groups, np.diff(edges).tolist(), seeded)
        groups = [cluster for siblings in clusters for cluster in siblings]
    return groups


def clusters_in_waves(Z: Waves, pointers: list[np.ndarray], kmeans: KMeans) -> list[np.ndarray]:
    """The clusters of labels; the lower levels of a subtree know all features of its labels alone."""
    upper, labels = 0, Z.upper.rows
    while upper < len(pointers) and labels > LABELS_PER_WAVE * (pointers[upper].size - 1):
        upper += 1
    waves = split(Z.upper, [np.arange(labels)], pointers[:upper], kmeans)
    alone = kmeans._replace(threads=1, seed=kmeans.seed + upper)

    def work(wave: int, _: np.ndarray) -> list[np.ndarray]:
        members, own, nodes = waves[wave], [], (wave, wave + 1)
        for edges in pointers[upper:]:
            inner = edges[nodes[0] : nodes[1] + 1]
            nodes = (int(inner[0]), int(inner[-1]))
            own.append(inner - inner[0])
        if not own:
            return [members]
        groups = split(Z.of(members), [np.arange(members.size)], own, alone)
        return [members[group] for group in groups]

    solved = run_anywhere(work, range(len(waves)), kmeans.threads, stage="label tree")
    parallel.give_back()
    return [cluster for clusters in solved for cluster in clusters]


def joined_tree(Z: Features | Waves, sizes: list[int], join: int, kmeans: KMeans) -> Tree:
    """Build the HLT from bottom up: the clusters of labels, of which `join` neighbours form a node.

    `sizes` are K[1] … K[D-1]. The clusters come from recursive balanced bisection, so neighbours are
    similar. Unlike in `balanced_tree`, only the last node of a level has fewer children than others.
    """
    bottom = balanced_tree(Z, sizes[-1:], kmeans)
    pointers = [np.array([0, sizes[0]])]
    for size, below in pairwise(sizes):
        pointers.append(np.append(np.arange(size) * join, below))
    return Tree((*pointers, bottom.child_ptr[1]), bottom.label_of)


def free_tree(Z: Features | Waves, branching: int, leaf: int, kmeans: KMeans) -> Tree:
    """Build the HLT by plain k-means, as in Bonsai; clusters of up to `leaf` labels are not split."""
    Z = Z.upper if isinstance(Z, Waves) else keep_largest(Z, kmeans.largest, kmeans.threads)
    groups = [np.arange(Z.rows)]
    pointers: list[np.ndarray] = []
    while max(group.size for group in groups) > leaf:
        clusters = []
        for number, group in enumerate(groups):
            seeded = kmeans._replace(seed=kmeans.seed + 7919 * len(pointers) + number)
            clusters.append(
                free_clusters(Z, group, branching, seeded) if group.size > leaf else [group]
            )
        if len(pointers) >= 8 and max(map(len, clusters)) == 1:
            break  # the remaining labels have identical features
        pointers.append(np.append(0, np.cumsum([len(siblings) for siblings in clusters])))
        groups = [cluster for siblings in clusters for cluster in siblings]
    return with_label_level(pointers, groups)


def with_label_level(pointers: list[np.ndarray], groups: list[np.ndarray]) -> Tree:
    """Complete the tree with the level of the labels, which `groups` assigns to clusters."""
    pointers = [*pointers, np.append(0, np.cumsum([group.size for group in groups]))]
    return Tree(tuple(pointers), np.concatenate(groups).astype(np.int64))
