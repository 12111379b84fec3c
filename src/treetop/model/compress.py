"""Model compression: fewer weights and fewer bits per weight."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from treetop.errors import TreetopError
from treetop.model.model import Model
from treetop.model.predictor import Predictor
from treetop.ranking.packing import BYTES, STORAGES, cells_of, largest_within, weights_from
from treetop.runtime import Runtime
from treetop.runtime.arrays import stored_bytes


def folder_bytes(folder: Path) -> int:
    """Add up the sizes of the files in a model folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def compress(
    model: Predictor, folder: Path, max_bytes: int | None, storage: str, runtime: Runtime
) -> tuple[Model, float]:
    """Store weights in fewer bits and drop the smallest ones until the model fits.

    Parameters
    ----------
    model : Predictor
        A model; ensembles are refused.
    folder : Path
        The folder that holds the model uncompressed.
    max_bytes : int, optional
        Maximum size of the compressed folder; by default no weights are dropped.
    storage : {'float16', 'int8'}
        Type of the stored weights.
    runtime : Runtime
        Threads.

    Returns
    -------
    Model, float
        The compressed model, and the absolute value below which weights were dropped.
    """
    if storage not in STORAGES[1:]:
        raise TreetopError(f"storage is {storage!r}: choose one of {', '.join(STORAGES[1:])}")
    if not isinstance(model, Model):
        raise TreetopError("an ensemble cannot be compressed: compress each of its members")
    cells = [cells_of(ranker.weights) for ranker in model.rankers]
    threshold = 0.0
    if max_bytes is not None:
        fixed = fixed_bytes(model, folder, storage)
        room = max_bytes - fixed
        threshold = largest_within(cells, room, storage) if room > 0 else float("inf")
        if not np.isfinite(threshold):
            raise TreetopError(
                f"{max_bytes:,} bytes are too few: give more than {fixed:,}, the size without weights"
            )
    rankers = [
        replace(
            ranker,
            weights=weights_from(
                own.kept(np.abs(own.value) >= threshold),
                ranker.weights,
                ranker.tree,
                ranker.weights.features,
                runtime.thread_count,
            ),
        )
        for ranker, own in zip(model.rankers, cells, strict=True)
    ]
    return replace(model, rankers=tuple(rankers), storage=storage), threshold


def fixed_bytes(model: Model, folder: Path, storage: str) -> int:
    """Compute the size of the compressed folder without the weights of sparse features."""
    fixed = folder_bytes(folder) - (folder / "ranker.safetensors").stat().st_size
    fixed -= sum(
        stored_bytes(path).get("F32", 0) // 2 for path in (folder / "encoder").glob("*.safetensors")
    )
    for ranker in model.rankers:
        weights = ranker.weights
        clusters = weights.child_ptr.size - 1
        fixed += weights.dense.size * BYTES[storage] + weights.biases.nbytes
        fixed += weights.child_ptr.nbytes + weights.level_ptr.nbytes + 16 * clusters + 4096
    return fixed
