"""Spherical k-means on label features: balanced, by recursive bisection, or plain."""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np

from treetop.features.hybrid import Features
from treetop.kernels import bisection, centroids
from treetop.runtime import parallel
from treetop.runtime.anywhere import run_anywhere


class KMeans(NamedTuple):
    """Parameters of k-means."""

    passes: int  # maximum number of iterations
    seed: int
    threads: int
    largest: int | None = None  # number of features per label to use, the largest ones; None: all


class Part(NamedTuple):
    """Labels of a group that become its clusters `first`, `first` + 1, …"""

    members: np.ndarray  # int64, label numbers
    edges: np.ndarray  # int64, where each cluster begins, and the end
    group: int
    first: int


class Zeros(threading.local):
    """Zeros for all columns, allocated once per thread, and anew where they are sent."""

    def __init__(self, columns: int) -> None:
        self.array = np.zeros(columns, np.float32)

    def __reduce__(self) -> tuple[type[Zeros], tuple[int]]:
        return Zeros, (self.array.size,)


def even_edges(count: int, parts: int) -> np.ndarray:
    """Return the edges of `parts` contiguous ranges whose sizes differ by at most one."""
    return np.arange(parts + 1) * count // parts


def balanced_clusters(
    Z: Features, groups: list[np.ndarray], parts: list[int], kmeans: KMeans
) -> list[list[np.ndarray]]:
    """Split each group of labels into `parts` clusters whose sizes differ by at most one.

    A group is bisected by balanced 2-means, then each half, until every part is one cluster. Returns
    the clusters of each group, in order.
    """
    pending = [
        Part(members, even_edges(members.size, count), group, 0)
        for group, (members, count) in enumerate(zip(groups, parts, strict=True))
    ]
    clusters: list[dict[int, np.ndarray]] = [{} for _ in groups]
    step, zeros = 0, Zeros(sum(Z.widths))
    while pending:
        for part in pending:
            if part.edges.size == 2:
                clusters[part.group][part.first] = part.members
        # Large parts first, so that no thread is left with a large one at the end.
        divisible = [part for part in pending if part.edges.size > 2]
        divisible.sort(key=lambda part: -part.members.size)

        def bisect(part: Part, cancel: np.ndarray, step: int = step) -> list[Part]:
            members, edges, group, first = part._replace(members=part.members.copy())
            middle = (edges.size - 1) // 2
            left_size = int(edges[middle] - edges[0])
            if 0 < left_size < members.size:
                seeds = np.random.SeedSequence([kmeans.seed, step, group, first])
                bisection.bisect(  # reorders `members` in place
                    *Z.arrays,
                    members,
                    Z.widths[0],
                    left_size,
                    kmeans.passes,
                    int(seeds.generate_state(1)[0]),
                    zeros.array,  # as the kernel leaves them
                    cancel,
                )
            return [
                Part(members[:left_size], edges[: middle + 1], group, first),
                Part(members[left_size:], edges[middle:], group, first + middle),
            ]

        halves = run_anywhere(bisect, divisible, kmeans.threads, stage="label tree")
        pending = [half for pair in halves for half in pair]
        step += 1
    return [[by_number[number] for number in sorted(by_number)] for by_number in clusters]


def free_clusters(Z: Features, members: np.ndarray, parts: int, kmeans: KMeans) -> list[np.ndarray]:
    """Split labels into up to `parts` clusters by plain spherical k-means; empty ones are dropped."""
    members = np.ascontiguousarray(members, np.int64)
    parts = min(parts, members.size)
    start = np.random.default_rng(kmeans.seed).permutation(members.size)[:parts]
    clusters = np.full(members.size, -1, np.int32)
    centres = cluster_sums(Z, members[start], np.arange(parts, dtype=np.int32), parts)
    for _ in range(kmeans.passes):
        lengths = np.maximum(np.linalg.norm(centres, axis=1, keepdims=True), 1e-12)
        directions = np.ascontiguousarray((centres / lengths).T)

        def assign(span: tuple[int, int], _: np.ndarray, directions: np.ndarray = directions) -> int:
            return int(centroids.assign(*Z.arrays, members, Z.widths[0], directions, clusters, *span))

        spans = parallel.ranges(members.size, kmeans.threads)
        if sum(parallel.run(assign, spans, kmeans.threads)) == 0:  # no label has moved
            break
        centres = cluster_sums(Z, members, clusters, parts)
    by_number = [members[clusters == cluster] for cluster in range(parts)]
    return [cluster for cluster in by_number if cluster.size]


def cluster_sums(Z: Features, members: np.ndarray, clusters: np.ndarray, count: int) -> np.ndarray:
    """Sum the rows of each cluster: float32 of shape (clusters, columns of both halves)."""
    centres = np.zeros((count, sum(Z.widths)), np.float32)
    centroids.sum_clusters(*Z.arrays, members, clusters, Z.widths[0], centres)
    return centres
