"""A smaller model: fewer weights, fewer bits, at a cost in precision that can be measured."""

from __future__ import annotations

import copy
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from treetop.base import Estimator
from treetop.errors import TreetopError
from treetop.ranking.packing import BYTES, STORAGES, cells_of, largest_within, weights_from
from treetop.runtime.parallel import thread_count

UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def parse_size(text: str) -> int:
    """``200MB`` as a number of bytes."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", text)
    if not found or found[2].upper() not in UNITS:
        raise TreetopError(f"size {text!r} is not understood: write 200MB or 1.5GB")
    return int(float(found[1]) * UNITS[found[2].upper()])


def folder_bytes(folder: Path) -> int:
    """Size of a model folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def compress(model: Any, folder: Path, max_bytes: int | None, storage: str) -> tuple[Any, float]:
    """The model of `folder` with weights in `storage`, pruned until it fits; and the threshold.

    `model` stays as it is.
    """
    if storage not in STORAGES[1:]:
        raise TreetopError(f"storage is {storage!r}: choose one of {', '.join(STORAGES[1:])}")
    if not isinstance(model, Estimator):
        raise TreetopError("an ensemble is compressed member by member")
    threads = thread_count(None)
    cells = [cells_of(ranker.weights) for ranker in model.rankers_]
    threshold = 0.0
    if max_bytes is not None:
        least = other_bytes(model, folder, storage)
        room = max_bytes - least
        threshold = largest_within(cells, room, storage) if room > 0 else float("inf")
        if not np.isfinite(threshold):
            raise TreetopError(
                f"{max_bytes:,} bytes are too few: without any weight the model has {least:,}"
            )
    made = copy.copy(model)
    made.rankers_ = [
        replace(
            ranker,
            storage=storage,
            weights=weights_from(
                one.kept(np.abs(one.value) >= threshold),
                ranker.weights,
                ranker.tree,
                ranker.weights.row_ptr.size - 1,
                threads,
            ),
        )
        for ranker, one in zip(model.rankers_, cells, strict=True)
    ]
    return made, threshold


def other_bytes(model: Estimator, folder: Path, storage: str) -> int:
    """What the packed folder takes without its weights of words."""
    fixed = folder_bytes(folder) - (folder / "ranker.safetensors").stat().st_size
    fixed -= sum(float32_bytes(path) // 2 for path in (folder / "encoder").glob("*.safetensors"))
    for ranker in model.rankers_:
        weights = ranker.weights
        clusters = weights.child_ptr.size - 1
        fixed += weights.dense.size * BYTES[storage] + weights.biases.nbytes
        fixed += weights.child_ptr.nbytes + weights.level_ptr.nbytes + 16 * clusters + 4096
    return fixed


def float32_bytes(path: Path) -> int:
    """What the float32 arrays of a safetensors file take: they are halved."""
    with path.open("rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    found = (one for name, one in header.items() if name != "__metadata__" and one["dtype"] == "F32")
    return sum(one["data_offsets"][1] - one["data_offsets"][0] for one in found)
