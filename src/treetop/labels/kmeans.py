"""Spherical k-means over label features: balanced by halving, or without balance."""

from __future__ import annotations

import numpy as np

from treetop.features.hybrid import Features
from treetop.kernels import bisection, centroids
from treetop.runtime import parallel

# Labels to be cut, edges of the clusters to be made, number of the group, number of its first one.
Job = tuple[np.ndarray, np.ndarray, int, int]


def even_edges(count: int, parts: int) -> np.ndarray:
    """Edges of `parts` contiguous ranges whose sizes differ by at most one."""
    return np.arange(parts + 1) * count // parts


def balanced_clusters(
    Z: Features, groups: list[np.ndarray], parts: list[int], passes: int, seed: int, threads: int
) -> list[list[np.ndarray]]:
    """Cut each group of labels into so many clusters whose sizes differ by at most one.

    A cluster is found by halving: the group is cut in two by balanced 2-means, then each half.
    """
    columns = Z.sparse.shape[1]
    jobs: list[Job] = [
        (members.copy(), even_edges(members.size, count), number, 0)
        for number, (members, count) in enumerate(zip(groups, parts, strict=True))
    ]
    found: list[dict[int, np.ndarray]] = [{} for _ in groups]
    step = 0
    while jobs:
        halving = []
        for members, edges, number, first in jobs:
            if edges.size == 2:
                found[number][first] = members
            else:
                halving.append((members, edges, number, first))
        # Large groups first, so that no thread is left with a large one at the end.
        halving.sort(key=lambda job: -job[0].size)

        def work(job: Job, cancel: np.ndarray, step: int = step) -> list[Job]:
            members, edges, number, first = job
            middle = (edges.size - 1) // 2
            left_size = int(edges[middle] - edges[0])
            if 0 < left_size < members.size:
                vector = np.zeros(columns + Z.dense.shape[1], np.float32)
                job_seed = int(np.random.SeedSequence([seed, step, number, first]).generate_state(1)[0])
                bisection.bisect(
                    *Z.arrays, members, columns, left_size, passes, job_seed, vector, cancel
                )
            return [
                (members[:left_size], edges[: middle + 1], number, first),
                (members[left_size:], edges[middle:], number, first + middle),
            ]

        jobs = [half for pair in parallel.run(work, halving, threads) for half in pair]
        step += 1
    return [[clusters[first] for first in sorted(clusters)] for clusters in found]


def free_clusters(
    Z: Features, members: np.ndarray, parts: int, passes: int, seed: int, threads: int
) -> list[np.ndarray]:
    """Spherical k-means without balance; clusters that end up empty are left out."""
    columns = Z.sparse.shape[1]
    members = np.ascontiguousarray(members, np.int64)
    parts = min(parts, members.size)
    start = np.random.default_rng(seed).permutation(members.size)[:parts]
    clusters = np.full(members.size, -1, np.int32)
    centres = np.zeros((parts, columns + Z.dense.shape[1]), np.float32)
    centroids.sum_clusters(
        *Z.arrays, members[start], np.arange(parts, dtype=np.int32), columns, centres
    )
    for _ in range(passes):
        lengths = np.maximum(np.linalg.norm(centres, axis=1, keepdims=True), 1e-12)
        across = np.ascontiguousarray((centres / lengths).T)

        def work(task: tuple[int, int], _: np.ndarray, across: np.ndarray = across) -> int:
            return int(centroids.assign(*Z.arrays, members, columns, across, clusters, *task))

        tasks = parallel.ranges(members.size, threads)
        if sum(parallel.run(work, tasks, threads)) == 0:
            break
        centres[:] = 0.0
        centroids.sum_clusters(*Z.arrays, members, clusters, columns, centres)
    found = [members[clusters == cluster] for cluster in range(parts)]
    return [cluster for cluster in found if cluster.size]
