"""Checks of the weights of a file, plain or packed, against their tree and their features."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from treetop.errors import TreetopError
from treetop.kernels import checking as kernel
from treetop.labels.tree import Tree
from treetop.ranking.older import weights_of_format_2
from treetop.ranking.weights import Weights
from treetop.runtime import parallel
from treetop.runtime.arrays import Arrays
from treetop.runtime.checking import Column, Sizes, check_arrays

IN_BOTH = {
    "biases": Column("float32", ("nodes",)),
    "child_ptr": Column("int64", ("clusters+1",), ends_at="nodes"),
    "level_ptr": Column("int64", ("levels+1",), ends_at="clusters"),
}
PLAIN = {
    "starts": Column("int64", ("features+1", "2"), least=0),
    "rows": Column("int32", ("rows", "2")),
    "cells": Column("uint16", ("cells",)),
    "form": Column("int64", ("2",), least=1, below="form"),
    "dense": Column("float32", ("dense",)),
    **IN_BOTH,
}
# Of folders of format 2.
OLDER = {
    "row_ptr": Column("int64", ("features+1",), ends_at="rows"),
    "rows": Column("int32", ("rows", "2")),
    "pairs": Column("int32", ("pairs", "2")),
    "full": Column("float32", ("vectors", "16")),
    "dense": Column("float32", ("dense",)),
    **IN_BOTH,
}
FAULTS = {
    kernel.ROW_FALLS: "rows holds a cluster twice, or clusters that do not ascend",
    kernel.WRONG_CLUSTER: "rows holds a cluster that does not exist",
    kernel.WRONG_PLACE: "rows leads to weights that are not there",
    kernel.WRONG_CHILD: "its weights are of a child that their cluster does not have",
    kernel.NOT_FINITE: "its weights hold NaN or infinity",
}
# Features that a packed model may have without any weights for them: 128 MB of pointers.
UNUSED_FEATURES = 1 << 24


def sizes_of(tree: Tree, widths: tuple[int, int]) -> Sizes:
    """The sizes that weights have, given their tree and the columns of both halves of the features."""
    nodes = sum(tree.sizes)
    clusters = sum(pointers.size - 1 for pointers in tree.child_ptr)
    return {
        "features": widths[0],
        "nodes": nodes,
        "clusters": clusters,
        "levels": tree.depth,
        "dense": widths[1] * nodes,
    }


def check_weights(
    arrays: Mapping[str, np.ndarray], tree: Tree, widths: tuple[int, int], threads: int
) -> Weights:
    """Return the `Weights`; raise unless the search can follow every number in them."""
    sizes = {**sizes_of(tree, widths), "form": 3}
    if "row_ptr" in arrays:
        checked = check_arrays(arrays, OLDER, sizes, threads)
        check_same_tree(checked, tree)
        check_pairs(checked, threads)
        return weights_of_format_2(checked, threads)
    checked = check_arrays(arrays, PLAIN, sizes, threads)
    check_same_tree(checked, tree)
    check_marks(checked, threads)
    return Weights(**checked)


def check_marks(arrays: Arrays, threads: int) -> None:
    """Raise unless the rows lead to all weights in `cells`, one after the other."""
    starts, rows, cells = arrays["starts"], arrays["rows"], arrays["cells"]
    ends = np.array([[0, 0], [len(rows), cells.size]])
    if (np.diff(starts, axis=0) < 0).any() or not np.array_equal(starts[[0, -1]], ends):
        raise TreetopError("starts does not lead through rows and cells")
    tasks = 8 * threads if rows.size + cells.size > 1 << 16 else 1
    edges = np.searchsorted(starts.sum(1), np.linspace(0, starts[-1].sum(), tasks + 1)[1:-1])
    edges = np.unique(np.concatenate([[0], edges, [len(starts) - 1]])).tolist()

    def check(number: int, _: np.ndarray) -> int:
        own = edges[number : number + 2]
        return int(kernel.follow_marks(starts, rows, cells, arrays["form"], arrays["child_ptr"], *own))

    for fault in filter(None, parallel.run(check, range(len(edges) - 1), threads)):
        raise TreetopError(FAULTS[fault])


def check_same_tree(arrays: Arrays, tree: Tree) -> None:
    """Raise unless the weights number clusters and nodes as the tree does."""
    starts = np.append(0, np.cumsum(tree.sizes))
    ends = [start + pointers[1:] for start, pointers in zip(starts, tree.child_ptr, strict=False)]
    levels = np.cumsum([pointers.size - 1 for pointers in tree.child_ptr])
    same = np.array_equal(arrays["child_ptr"][1:], np.concatenate(ends))
    if not same or not np.array_equal(arrays["level_ptr"][1:], levels):
        raise TreetopError("child_ptr and level_ptr are not those of the label tree")


def check_pairs(arrays: Arrays, threads: int) -> None:
    """Raise unless the rows of format 2 lead to all weights, one after the other."""
    row_ptr, rows, pairs = arrays["row_ptr"], arrays["rows"], arrays["pairs"]
    vectors = len(arrays["full"])
    tasks = 8 * threads if pairs.size + rows.size > 1 << 16 else 1
    edges = np.searchsorted(row_ptr, np.linspace(0, row_ptr[-1], tasks + 1)[1:-1])
    edges = np.unique(np.concatenate([[0], edges, [row_ptr.size - 1]])).tolist()
    spans = np.empty((len(edges) - 1, 4), np.int64)

    def check(number: int, _: np.ndarray) -> int:
        first, last = edges[number : number + 2]
        own = (first, last, spans[number])
        return int(kernel.follow_rows(row_ptr, rows, pairs, vectors, arrays["child_ptr"], *own))

    for fault in filter(None, parallel.run(check, range(len(spans)), threads)):
        raise TreetopError(FAULTS[fault])
    for first, last, count in ((0, 1, len(pairs)), (2, 3, vectors)):
        used = spans[spans[:, first] >= 0]
        ends = np.append(0, used[:, last])
        if not np.array_equal(np.append(used[:, first], count), ends):
            raise TreetopError(FAULTS[kernel.WRONG_PLACE])


def check_packed(
    arrays: Mapping[str, np.ndarray], storage: str, tree: Tree, widths: tuple[int, int], threads: int
) -> Arrays:
    """Return the arrays of a packed ranker; raise unless weights can be made of them."""
    scales = Column("float32", ("clusters" if storage == "int8" else "0",), least=0)
    columns = {
        "cluster_sizes": Column("int64", ("clusters",), least=0, below="entries+1"),
        "features": Column("int32", ("entries",), least=0, below="features"),
        "sizes": Column("uint16", ("entries",)),
        "children": Column("uint16", ("cells",)),
        "values": Column(storage, ("cells",)),
        "scales": scales,
        "dense": Column(storage, ("dense",)),
        "dense_scales": scales,
        "features_in_all": Column("int64", ("1",), least=widths[0], below="features+1"),
        **IN_BOTH,
    }
    if widths[0] > UNUSED_FEATURES + sum(array.nbytes for array in arrays.values()):
        raise TreetopError(
            f"feature_widths in config.json, {widths[0]:,}, is too large for its weights"
        )
    checked = check_arrays(arrays, columns, sizes_of(tree, widths), threads)
    check_same_tree(checked, tree)
    cluster = np.repeat(np.arange(checked["cluster_sizes"].size), checked["cluster_sizes"])
    sizes = checked["sizes"].astype(np.int64)
    if cluster.size != sizes.size or sizes.sum() != checked["children"].size:
        raise TreetopError("its sizes do not add up to its weights")
    if ((np.diff(checked["features"]) <= 0) & (np.diff(cluster) == 0)).any():
        raise TreetopError("features holds one twice in a cluster, or they do not ascend")
    if (checked["children"] >= np.repeat(np.diff(checked["child_ptr"])[cluster], sizes)).any():
        raise TreetopError("children holds a child that its cluster does not have")
    for name in ("scales", "dense_scales"):
        if (checked[name] > np.finfo(np.float32).max / 128).any():
            raise TreetopError(f"{name} holds one that makes weights infinite")
    return checked
