"""Spherical k-means over label features: balanced by halving, or without balance."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from treetop.features.hybrid import Features
from treetop.kernels import bisection, centroids
from treetop.runtime import parallel


class KMeans(NamedTuple):
    """How k-means is done."""

    passes: int  # at most
    seed: int
    threads: int
    largest: int | None = None  # largest features of a label that decide its cluster; None: all


class Cut(NamedTuple):
    """Labels to be cut into clusters with these edges, the first of which is number `first`."""

    members: np.ndarray
    edges: np.ndarray
    group: int
    first: int


def even_edges(count: int, parts: int) -> np.ndarray:
    """Edges of `parts` contiguous ranges whose sizes differ by at most one."""
    return np.arange(parts + 1) * count // parts


def balanced_clusters(
    Z: Features, groups: list[np.ndarray], parts: list[int], kmeans: KMeans
) -> list[list[np.ndarray]]:
    """Cut each group of labels into so many clusters whose sizes differ by at most one.

    A cluster is found by halving: the group is cut in two by balanced 2-means, then each half.
    """
    cuts = [
        Cut(members.copy(), even_edges(members.size, count), group, 0)
        for group, (members, count) in enumerate(zip(groups, parts, strict=True))
    ]
    clusters: list[dict[int, np.ndarray]] = [{} for _ in groups]
    step = 0
    while cuts:
        for cut in cuts:
            if cut.edges.size == 2:
                clusters[cut.group][cut.first] = cut.members
        # Large groups first, so that no thread is left with a large one at the end.
        halving = sorted((cut for cut in cuts if cut.edges.size > 2), key=lambda cut: -cut.members.size)

        def work(cut: Cut, cancel: np.ndarray, step: int = step) -> list[Cut]:
            members, edges, group, first = cut
            middle = (edges.size - 1) // 2
            left_size = int(edges[middle] - edges[0])
            if 0 < left_size < members.size:
                seeds = np.random.SeedSequence([kmeans.seed, step, group, first])
                how = kmeans._replace(seed=int(seeds.generate_state(1)[0]))
                bisect_in_place(Z, members, left_size, how, cancel)
            return [
                Cut(members[:left_size], edges[: middle + 1], group, first),
                Cut(members[left_size:], edges[middle:], group, first + middle),
            ]

        cuts = [half for pair in parallel.run(work, halving, kmeans.threads) for half in pair]
        step += 1
    return [[family[first] for first in sorted(family)] for family in clusters]


def bisect_in_place(
    Z: Features, members: np.ndarray, left_size: int, kmeans: KMeans, cancel: np.ndarray
) -> None:
    """Reorder `members` so that the first `left_size` are one cluster and the rest the other."""
    columns = Z.sparse.shape[1]
    scratch = np.zeros(columns + Z.dense.shape[1], np.float32)
    bisection.bisect(
        *Z.arrays, members, columns, left_size, kmeans.passes, kmeans.seed, scratch, cancel
    )


def free_clusters(Z: Features, members: np.ndarray, parts: int, kmeans: KMeans) -> list[np.ndarray]:
    """Spherical k-means without balance; clusters that end up empty are left out."""
    members = np.ascontiguousarray(members, np.int64)
    parts = min(parts, members.size)
    start = np.random.default_rng(kmeans.seed).permutation(members.size)[:parts]
    clusters = np.full(members.size, -1, np.int32)
    centres = summed(Z, members[start], np.arange(parts, dtype=np.int32), parts)
    for _ in range(kmeans.passes):
        lengths = np.maximum(np.linalg.norm(centres, axis=1, keepdims=True), 1e-12)
        across = np.ascontiguousarray((centres / lengths).T)

        def work(task: tuple[int, int], _: np.ndarray, across: np.ndarray = across) -> int:
            columns = Z.sparse.shape[1]
            return int(centroids.assign(*Z.arrays, members, columns, across, clusters, *task))

        if sum(parallel.run(work, parallel.ranges(members.size, kmeans.threads), kmeans.threads)) == 0:
            break
        centres = summed(Z, members, clusters, parts)
    parted = [members[clusters == cluster] for cluster in range(parts)]
    return [cluster for cluster in parted if cluster.size]


def summed(Z: Features, members: np.ndarray, clusters: np.ndarray, count: int) -> np.ndarray:
    """float32, clusters x columns of both halves: the sum of each cluster's members."""
    columns = Z.sparse.shape[1]
    centres = np.zeros((count, columns + Z.dense.shape[1]), np.float32)
    centroids.sum_clusters(*Z.arrays, members, clusters, columns, centres)
    return centres
