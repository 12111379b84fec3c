"""Read PECOS's hierarchical linear model, one folder with W.npz and C.npz per level, as a ranker."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp

from treetop.data.npz import load_matrix
from treetop.data.sizes import LARGEST
from treetop.errors import TreetopError
from treetop.labels.tree import Tree
from treetop.ranking.chunks import assemble
from treetop.ranking.ranker import Ranker
from treetop.ranking.scores import path_score
from treetop.ranking.weights import ClusterWeights
from treetop.settings.parts import RankerSettings
from treetop.settings.schema import SCORE_TRANSFORMS

Value = TypeVar("Value")
SCORE_NAMES = {"noop": "identity"}
# PECOS's default weights of positives and negatives.
COSTS = {"lambda_": 0.5, "alpha": 1.0, "cost_sensitive": False}


class PecosLevel(NamedTuple):
    """Weights, tree and prediction parameters of one level, as PECOS saves them."""

    W: sp.csc_matrix  # features (and the bias, if there is one) x nodes
    C: sp.csc_matrix  # nodes x nodes of the level above
    bias: float
    top: int
    score: str


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except OSError:
        raise TreetopError(f"{path}: missing: not a model that PECOS saved") from None
    except (ValueError, RecursionError) as error:
        raise TreetopError(f"{path}: not valid JSON ({error})") from None
    if not isinstance(content, dict):
        raise TreetopError(f"{path}: expected a JSON object")
    return content


def read_pecos_ranker(folder: Path, dense_width: int, threads: int) -> tuple[Ranker, int]:
    """Read the ranker in a folder; also return its number of sparse features.

    The last `dense_width` features are those of the encoder.
    """
    depth = read_json(folder / "param.json").get("depth")
    if type(depth) is not int or depth < 1:
        raise TreetopError(f"{folder / 'param.json'}: depth is missing or not a positive integer")
    levels = [read_level(folder / f"{number}.model") for number in range(depth)]
    orders, pointers = [np.zeros(1, np.int64)], []
    for number, level in enumerate(levels):
        order, ends = children_in_order(folder / f"{number}.model", level.C, orders[-1])
        orders.append(order)
        pointers.append(ends)
    tree = Tree(tuple(pointers), orders[-1])
    if len({features_of(level) for level in levels}) > 1 or not orders[-1].size:
        raise TreetopError(
            f"{folder}: its levels have different features, or no labels: export it again"
        )
    sparse_width = features_of(levels[0]) - dense_width
    if sparse_width < 0:
        raise TreetopError(f"{folder}: the ranker has fewer features than the encoder has columns")
    clusters = [
        cluster
        for level, order, ends in zip(levels, orders[1:], pointers, strict=True)
        for cluster in clusters_of(level, order, ends, sparse_width, dense_width)
    ]
    weights = assemble(clusters, tree, sparse_width, threads)
    return Ranker(tree, weights, search_of(folder, levels)), sparse_width


def search_of(folder: Path, levels: Sequence[PecosLevel]) -> RankerSettings:
    """How PECOS searches these levels; the `top` of the last one is k, which the caller gives."""
    names = tuple(level.score for level in levels)
    try:
        path_score(names)
    except TreetopError as error:
        raise TreetopError(f"{folder}: its levels cannot be combined: {error}") from None
    settings = RankerSettings()
    return replace(
        settings,
        score_transform=str(one_or_each(names)),
        beam=one_or_each([level.top for level in levels[:-1]] or [settings.beam]),
        bias=one_or_each([max(level.bias, 0.0) for level in levels]),
    )


def one_or_each(values: Sequence[Value]) -> Value | str:
    """The value of all levels if they agree, or else their values in the notation by level."""
    return values[0] if len(set(values)) == 1 else "/".join(map(str, values))


def read_level(folder: Path) -> PecosLevel:
    """Read matrices and parameters of one level."""
    path = folder / "param.json"
    param = read_json(path)
    W, C = load_matrix(folder / "W.npz").tocsc(), load_matrix(folder / "C.npz").tocsc()
    if W.shape[1] != C.shape[0]:
        raise TreetopError(f"{folder}: W has {W.shape[1]} columns, but C has {C.shape[0]} rows")
    prediction = section(path, param, "pred_kwargs")
    score = str(prediction.get("post_processor", "l3-hinge"))
    score = SCORE_NAMES.get(score, score)
    if score not in SCORE_TRANSFORMS:
        raise TreetopError(f"{path}: unknown post_processor {score!r}")
    bias, top = (
        number_of_json(path, param, "bias", -1.0),
        number_of_json(path, prediction, "only_topk", 20),
    )
    if not 1 <= top < LARGEST or bias > LARGEST:
        raise TreetopError(f"{path}: only_topk must be at least 1, and bias a small number")
    return PecosLevel(W, C, bias, int(top), score)


def section(path: Path, content: dict[str, Any], name: str) -> dict[str, Any]:
    """A JSON object in another one; empty if it is missing."""
    value = content.get(name, {})
    if not isinstance(value, dict):
        raise TreetopError(f"{path}: {name} is not an object")
    return value


def number_of_json(path: Path, content: dict[str, Any], name: str, default: float) -> float:
    """A finite number in a JSON object, or the default if it is missing."""
    value = content.get(name, default)
    if type(value) not in (int, float) or not abs(value) < 1e30:
        raise TreetopError(f"{path}: {name} is {str(value)[:40]!r}, not a number")
    return float(value)


def features_of(level: PecosLevel) -> int:
    """Number of features, not counting the bias."""
    return int(level.W.shape[0]) - (level.bias > 0)


def children_in_order(
    folder: Path, C: sp.csc_matrix, parents: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Nodes ordered by parent, and the position where the children of each parent end."""
    if C.shape[1] != parents.size or not (np.bincount(C.indices, minlength=C.shape[0]) == 1).all():
        raise TreetopError(f"{folder / 'C.npz'}: every node must have exactly one parent")
    C.sort_indices()
    parts = [C.indices[C.indptr[parent] : C.indptr[parent + 1]] for parent in parents.tolist()]
    ends = np.append(0, np.cumsum([part.size for part in parts]))
    return np.concatenate(parts).astype(np.int64), ends.astype(np.int64)


def clusters_of(
    level: PecosLevel, order: np.ndarray, ends: np.ndarray, sparse_width: int, dense_width: int
) -> list[ClusterWeights]:
    """Weights of the clusters of one level, in the order of the tree."""
    clusters = []
    for start, end in zip(ends[:-1], ends[1:], strict=True):
        cells = sp.coo_matrix(level.W[:, order[start:end]], dtype=np.float32)
        words = np.flatnonzero(cells.row < sparse_width)
        words = words[np.lexsort((cells.col[words], cells.row[words]))]
        used, sizes = np.unique(cells.row[words], return_counts=True)
        dense = np.zeros((dense_width, end - start), np.float32)
        biases = np.zeros(end - start, np.float32)
        of_encoder = (cells.row >= sparse_width) & (cells.row < sparse_width + dense_width)
        dense[cells.row[of_encoder] - sparse_width, cells.col[of_encoder]] = cells.data[of_encoder]
        if level.bias > 0:
            last = cells.row == level.W.shape[0] - 1
            biases[cells.col[last]] = level.bias * cells.data[last]
        rows = (used.astype(np.int32), np.cumsum(sizes), cells.col[words].astype(np.int32))
        clusters.append(ClusterWeights(*rows, cells.data[words], dense, biases))
    return clusters
