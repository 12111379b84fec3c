"""A smaller model: fewer weights, fewer bits, at a cost in precision that can be measured."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np

from treetop.errors import TreetopError
from treetop.model.model import Model, Predictor
from treetop.ranking.packing import BYTES, STORAGES, cells_of, largest_within, weights_from
from treetop.runtime import Runtime

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


def compress(
    model: Predictor, folder: Path, max_bytes: int | None, storage: str, runtime: Runtime
) -> tuple[Model, float]:
    """The model of `folder` with weights in `storage`, pruned until it fits; and the threshold."""
    if storage not in STORAGES[1:]:
        raise TreetopError(f"storage is {storage!r}: choose one of {', '.join(STORAGES[1:])}")
    if not isinstance(model, Model):
        raise TreetopError("an ensemble is compressed member by member")
    cells = [cells_of(ranker.weights) for ranker in model.rankers]
    threshold = 0.0
    if max_bytes is not None:
        least = other_bytes(model, folder, storage)
        room = max_bytes - least
        threshold = largest_within(cells, room, storage) if room > 0 else float("inf")
        if not np.isfinite(threshold):
            raise TreetopError(
                f"{max_bytes:,} bytes are too few: without any weight the model has {least:,}"
            )
    rankers = [
        replace(
            ranker,
            weights=weights_from(
                own.kept(np.abs(own.value) >= threshold),
                ranker.weights,
                ranker.tree,
                ranker.weights.row_ptr.size - 1,
                runtime.thread_count,
            ),
        )
        for ranker, own in zip(model.rankers, cells, strict=True)
    ]
    return replace(model, rankers=tuple(rankers), storage=storage), threshold


def other_bytes(model: Model, folder: Path, storage: str) -> int:
    """What the packed folder takes without its weights of words."""
    fixed = folder_bytes(folder) - (folder / "ranker.safetensors").stat().st_size
    fixed -= sum(float32_bytes(path) // 2 for path in (folder / "encoder").glob("*.safetensors"))
    for ranker in model.rankers:
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
