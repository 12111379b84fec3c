"""Division of documents into splits: reproducible, in groups, stratified by labels.

Documents are put in an order that depends on the seed and on the documents, not on their places in
the file. Documents of a group stay together; equal documents are always a group.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
import scipy.sparse as sp

from treetop.data.dataset import Split
from treetop.errors import TreetopError
from treetop.labels.vocabulary import vocabulary_of


def partition(
    split: Split,
    shares: Mapping[str, float],
    seed: int = 0,
    groups: Sequence[Hashable] | None = None,
    stratify: bool = False,
) -> dict[str, np.ndarray]:
    """Row numbers, ascending, of the documents of each new split.

    Parameters
    ----------
    split : Split
        The documents.
    shares : mapping of str to float
        Share of the documents by name of the new split. Their sum is 1.
    seed : int
        Another seed gives another division.
    groups : sequence of length N, optional
        The group of each document.
    stratify : bool
        Whether each label is divided by the same shares as far as possible, rare ones first.
    """
    group_of = numbered_groups(split, groups)
    order = shuffled(split, group_of, seed)
    sizes = np.bincount(group_of)
    if stratify:
        chosen = stratified(
            label_counts_of_groups(split, group_of), order, sizes, list(shares.values())
        )
    else:
        chosen = in_order(order, sizes, list(shares.values()))
    parts = {name: np.flatnonzero(chosen[group_of] == at) for at, name in enumerate(shares)}
    for name, rows in parts.items():
        if not rows.size:
            raise TreetopError(
                f"{len(split):,} documents in {sizes.size:,} groups: none is left for {name}: choose "
                "other shares"
            )
    return parts


def numbered_groups(split: Split, groups: Sequence[Hashable] | None) -> np.ndarray:
    """The number of the group of each document; documents that are equal are of one group."""
    numbers: dict[Any, int] = {}
    if groups is not None:
        return np.array([numbers.setdefault(group, len(numbers)) for group in groups], np.int64)
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys_of(split)], np.int64)


def keys_of(split: Split) -> list[bytes]:
    """The content of each document as bytes."""
    if split.texts is not None:
        return [text.encode("utf-8", "surrogatepass") for text in split.texts]
    X = sp.csr_matrix(split.X)
    ends = zip(X.indptr[:-1].tolist(), X.indptr[1:].tolist(), strict=True)
    return [X.indices[a:b].tobytes() + X.data[a:b].tobytes() for a, b in ends]


def shuffled(split: Split, group_of: np.ndarray, seed: int) -> np.ndarray:
    """The groups in an order that depends on the seed and the first document of each."""
    _, first = np.unique(group_of, return_index=True)
    keys = keys_of(split)
    salt = str(seed).encode()
    hashes = [blake2b(keys[row], digest_size=16, salt=salt[:16]).digest() for row in first]
    return np.array(sorted(range(len(hashes)), key=hashes.__getitem__), np.int64)


def in_order(order: np.ndarray, sizes: np.ndarray, shares: Sequence[float]) -> np.ndarray:
    """The number of the split of each group: the last is filled first, the first gets the rest."""
    chosen = np.zeros(sizes.size, np.int64)
    ends = np.cumsum(sizes[order])
    start = 0
    for at in range(len(shares) - 1, 0, -1):
        wanted = start + shares[at] * int(sizes.sum())
        # The number of documents that is nearest to the share.
        inside = (ends - sizes[order] / 2 >= start) & (ends - sizes[order] / 2 < wanted)
        chosen[order[inside]] = at
        start = int(ends[inside][-1]) if inside.any() else start
    return chosen


def label_counts_of_groups(split: Split, group_of: np.ndarray) -> sp.csr_matrix:
    """The number of documents of each group that have each label: groups x labels."""
    if split.Y is not None:
        Y = sp.csr_matrix(split.Y).astype(bool).astype(np.float64)
    elif split.labels is not None:
        Y = vocabulary_of(split.labels).encode(split.labels).astype(np.float64)
    else:
        raise TreetopError("the data has no labels to stratify by: leave out --stratify")
    ones = np.ones(group_of.size)
    member = sp.csr_matrix((ones, (group_of, np.arange(group_of.size))))
    return sp.csr_matrix(member @ Y)


def stratified(
    counts: sp.csr_matrix, order: np.ndarray, sizes: np.ndarray, shares: Sequence[float]
) -> np.ndarray:
    """The number of the split of each group: groups with rare labels first, each where they lack.

    A version of iterative stratification (Sechidis et al. 2011) that orders the groups once.
    """
    totals = np.asarray(counts.sum(axis=0)).ravel()
    rarest = np.full(sizes.size, np.inf)
    rows = np.repeat(np.arange(sizes.size), np.diff(counts.indptr))
    np.minimum.at(rarest, rows, totals[counts.indices])
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    lacking = np.outer(shares, totals)
    room = np.asarray(shares) * sizes.sum()
    chosen = np.zeros(sizes.size, np.int64)
    for group in np.lexsort((place, rarest)).tolist():
        labels = slice(counts.indptr[group], counts.indptr[group + 1])
        columns = counts.indices[labels]
        need = (lacking[:, columns] / totals[columns]).sum(axis=1)
        need[room < sizes[group] / 2] = -np.inf
        # Of equal needs the larger room decides.
        best = int(np.lexsort((-room, -need))[0])
        chosen[group] = best
        lacking[best, columns] -= counts.data[labels]
        room[best] -= sizes[group]
    return chosen
