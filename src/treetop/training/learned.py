"""Assembly of the trained model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from treetop.features.feature_map import FeatureMap
from treetop.features.hybrid import Features
from treetop.model.documents import KeptDocuments
from treetop.model.model import Model
from treetop.model.seen import SeenDocuments
from treetop.ranking.ranker import Ranker
from treetop.runtime import Runtime
from treetop.settings import auto
from treetop.settings.schema import LinearSettings


def learned_model(
    *,
    kind: str,
    settings: LinearSettings,
    asked: LinearSettings,
    classes: np.ndarray,
    feature_map: FeatureMap,
    rankers: Sequence[Ranker],
    X: Features,
    Y: sp.csr_matrix,
    texts: Sequence[str] | None,
    runtime: Runtime,
    hashes: Iterable[int],
    history: Sequence[dict[str, Any]] = (),
    competition: str = "",
) -> Model:
    """Assemble the model from its rankers and from statistics of the training documents.

    `hashes` are those of the documents. `asked` are the settings as they were passed, `settings` those
    resolved for the data; `competition` says why, if a competition resolved them.
    """
    settings = auto.as_trained(settings, rankers[0].settings, rankers[0].tree.sizes)
    resolved = sorted(n for n, value in vars(settings).items() if value != getattr(asked, n))
    documents = None
    if settings.keep_documents:
        documents = KeptDocuments.of(X, Y, texts, runtime.thread_count)
    return Model(
        kind=kind,
        settings=settings,
        asked={name: getattr(asked, name) for name in resolved},
        classes=classes,
        feature_map=feature_map,
        rankers=tuple(rankers),
        label_counts=np.bincount(Y.indices, minlength=Y.shape[1]),
        train_documents=Y.shape[0],
        documents=documents,
        seen=SeenDocuments.of(hashes),
        history=tuple(history),
        competition=competition,
    )
