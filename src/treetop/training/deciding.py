"""Decides on settings that are left open: for texts of any kind, and as a stage of a run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice

import numpy as np
import scipy.sparse as sp

from treetop.runtime import Runtime
from treetop.runtime.arrays import Arrays
from treetop.settings import auto
from treetop.settings.parts import RANKER
from treetop.settings.schema import TransformerSettings
from treetop.training.competition import Kind, decided
from treetop.training.documents import HeldTexts, TrainingDocuments
from treetop.training.run import Run, Stage
from treetop.training.sampling import SampledFrom

# Documents of an iterator, which can be read only once, that a competition may look at.
MOST_READ = 50_000
NONE_HELD = HeldTexts()
# The settings that trials and rules read.
COMPETITION = Stage(
    "competition",
    (
        "competition",
        "optimize",
        "ngrams",
        "min_df",
        "max_df",
        "max_features",
        "sublinear",
        "stop_words",
        "lowercase",
        "shortest_word",
        "trees",
        "tree",
        "flat_labels",
        "branching",
        "leaf",
        "balanced",
        "seed",
        *RANKER,
    ),
    ("data",),
)


def decided_on_texts(
    settings: Kind,
    texts: Iterable[str],
    Y: sp.csr_matrix,
    weights: np.ndarray | None,
    runtime: Runtime,
    held: HeldTexts = NONE_HELD,
) -> tuple[Kind, Iterable[str], str]:
    """Like `decided`; also return all the texts. Of an iterator, only the first ones compete."""
    if settings.ngrams != "auto" or not settings.competition:
        return (*auto.with_ngrams(settings, texts), "")
    first: Sequence[str]
    if isinstance(texts, Iterator):
        first = list(islice(texts, MOST_READ))
        texts = chain(first, texts)
    else:
        first = texts = texts if isinstance(texts, Sequence) else list(texts)
    count = len(first)
    own = None if weights is None else weights[:count]
    chosen, line = decided(settings, SampledFrom(first, Y[:count], own, *held), runtime)
    return chosen, texts, line


def decided_in_run(
    settings: TransformerSettings, data: TrainingDocuments, runtime: Runtime, run: Run
) -> tuple[TransformerSettings, str]:
    """Like `decided`, as a stage of a run, and with all costs and sizes decided."""
    line = ""
    if data.features is None:

        def make(own: TransformerSettings) -> Arrays:
            held = (data.held_texts, data.held_labels) if data.held_texts else ((), None)
            documents = SampledFrom(data.texts, data.Y, data.weights, *held)
            read = TransformerSettings(**{name: getattr(own, name) for name in COMPETITION.reads})
            chosen, line = decided(read, documents, runtime)
            facts = json.dumps([chosen.ngrams, line])
            return {"decided": np.frombuffer(facts.encode(), np.uint8)}

        arrays = run.stage(COMPETITION, settings, make)
        ngrams, line = json.loads(arrays["decided"].tobytes())
        settings = replace(settings, ngrams=ngrams)
    return auto.for_size(auto.with_costs(settings, data.Y, data.weights), data.Y.shape[1]), line
