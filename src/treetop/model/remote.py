"""Prediction on a Ray cluster, by `map_batches` of Ray Data: blocks of documents in, scores out."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from treetop.features.encoders.handle import EncoderHandle
from treetop.features.encoders.opening import is_exported
from treetop.features.given import is_text, python_texts
from treetop.model.ensemble import EnsembleModel
from treetop.model.model import Model
from treetop.model.predictor import Predictor
from treetop.runtime import Runtime
from treetop.runtime.anywhere import using_cluster
from treetop.runtime.cluster import Cluster
from treetop.runtime.failpoints import failpoint
from treetop.runtime.progress import Reporter

DOCUMENTS_PER_BLOCK = 512


@dataclass(frozen=True)
class Request:
    """What is asked of the model for every block."""

    k: int
    beam: int | None
    allow: list[object] | None
    calibrated: bool  # probabilities instead of scores
    runtime: Runtime


class BlockPredictor:
    """A model in a process of the cluster. Ray Data calls it with batches of one block."""

    def __init__(self, model: Any, request: Request) -> None:
        """`model` is a reference to the model, whose arrays each machine keeps once."""
        import ray

        self.model: Predictor = ray.get(model[0])
        self.request = request

    def __call__(self, batch: dict[str, np.ndarray]) -> dict[str, list[Any]]:
        """Score the labels of the documents of a block."""
        failpoint("predict", int(batch["number"][0]))
        documents, candidates = pickle.loads(batch["block"][0])
        request = self.request
        features = self.model.features(documents, request.runtime)
        scores = self.model.scores_from(
            features,
            request.k,
            request.runtime,
            beam=request.beam,
            allow=request.allow,
            candidates=candidates,
        )
        if request.calibrated:
            scores = self.model.probabilities(features, scores)
        return {"number": [int(batch["number"][0])], "scores": [pickle.dumps(scores)]}


def scores_on_cluster(
    model: Predictor,
    documents: Any,
    k: int,
    runtime: Runtime,
    *,
    beam: int | None = None,
    allow: Iterable[object] | None = None,
    candidates: sp.csr_matrix | None = None,
    calibrated: bool = False,
) -> sp.csr_matrix:
    """Score the best `k` labels of each document, as `Predictor.scores_from` does.

    With `calibrated`, the scores are probabilities.
    """
    own = replace(runtime, cluster=None, threads=1, device="auto", reporter=Reporter())
    allowed = None if allow is None else list(allow)
    request = Request(k, beam, allowed, calibrated, own)
    with using_cluster(runtime) as cluster:
        assert cluster is not None
        blocks = document_blocks(documents, candidates)
        scores = dict(predicted_blocks(cluster, cluster.ray.put(movable(model)), request, blocks))
    listed = [scores[number] for number in range(len(blocks))]
    return listed[0] if len(listed) == 1 else sp.csr_matrix(sp.vstack(listed, "csr"))


def document_blocks(documents: Any, candidates: sp.csr_matrix | None) -> list[tuple[Any, Any]]:
    """Divide documents, and their candidates, into blocks; at least one."""
    if is_text(documents) and not hasattr(documents, "X"):
        documents = list(python_texts(documents))
    count = documents.shape[0] if hasattr(documents, "shape") else len(documents)
    spans = [
        slice(start, start + DOCUMENTS_PER_BLOCK) for start in range(0, count, DOCUMENTS_PER_BLOCK)
    ]
    return [
        (documents[span], None if candidates is None else candidates[span])
        for span in spans or [slice(0, 0)]
    ]


def predicted_blocks(
    cluster: Cluster, model: Any, request: Request, blocks: list[tuple[Any, Any]]
) -> Iterable[tuple[int, sp.csr_matrix]]:
    """Yield the number and the scores of each block, in any order."""
    import ray.data

    logging.getLogger("ray.data").setLevel(logging.ERROR)
    ray.data.DataContext.get_current().enable_progress_bars = False
    items = [{"number": n, "block": pickle.dumps(block)} for n, block in enumerate(blocks)]
    dataset = ray.data.from_items(items, override_num_blocks=len(items)).map_batches(
        BlockPredictor,
        # Within a list, a reference is passed on as it is.
        fn_constructor_args=([model], request),
        batch_size=1,
        num_cpus=1,
        concurrency=(1, min(len(items), cluster.cores)),
    )
    for row in dataset.iter_rows():
        yield int(row["number"]), pickle.loads(row["scores"])


def movable(model: Predictor) -> Predictor:
    """Return the model with encoders that machines without its folder can use, too."""
    if isinstance(model, EnsembleModel):
        return replace(model, members=tuple(map(movable, model.members)))
    assert isinstance(model, Model)
    handle = model.feature_map.encoder
    if handle is None or handle.folder is None or is_exported(str(handle.folder)):
        return model
    opened = handle.open(Runtime(device="cpu"))
    held = EncoderHandle.holding(opened, handle.max_length, handle.dropout)
    return replace(model, feature_map=replace(model.feature_map, encoder=held))
