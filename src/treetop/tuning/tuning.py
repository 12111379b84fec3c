"""`treetop.tune`: settings for the user's own data, at least as good as the defaults there."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from treetop.errors import TreetopError
from treetop.estimators import KINDS
from treetop.evaluation.sums import Sums
from treetop.features.words.tokens import check_text
from treetop.labels.alignment import align
from treetop.model.seen import hashes_of
from treetop.runtime import Runtime
from treetop.runtime.extras import require
from treetop.settings import auto
from treetop.settings.making import PARAMETERS, check_parameters
from treetop.settings.schema import LinearSettings, TransformerSettings
from treetop.training.folds import held_out
from treetop.training.inputs import check_count, read_labels
from treetop.training.run import data_fingerprint
from treetop.tuning.choosing import Tuned, outcome
from treetop.tuning.helping import helpers
from treetop.tuning.search import (
    SharedSearch,
    open_study,
    run_trials,
)
from treetop.tuning.space import dimensions
from treetop.tuning.workspace import SplitDocuments, Workspace

METRICS = {"macro-F1": "macro_f1@5"}


def tune(
    X: Sequence[str],
    y: object,
    *,
    model: str = "xr-linear",
    settings: Mapping[str, Any] | None = None,
    validation: tuple[Sequence[str], Any] | None = None,
    seconds: float = 600.0,
    trials: int | None = None,
    jobs: int = 1,
    storage: str | Path | None = None,
    label_names: Sequence[object] | None = None,
    runtime: Runtime | None = None,
    report: Callable[[Any], None] | None = None,
) -> Tuned:
    """Search for settings that suit these documents.

    Features, label trees and vectors of a frozen encoder are shared by trials, bad trials are
    abandoned after their first tree, and the defaults are the first trial. The result is better than
    the defaults on held-out documents, or the defaults.

    Parameters
    ----------
    X : sequence of str
        Texts to train on.
    y, label_names
        Their labels, as for `XRLinear.fit`.
    model : str, default="xr-linear"
        Kind of model: xr-linear, or xr-transformer with a frozen encoder.
    settings : dict, optional
        Settings that are not searched.
    validation : (texts, labels), optional
        Documents to evaluate on; by default, a part of `X` is held out.
    seconds : float, default=600
        Time for the search. Training the defaults first is part of it.
    trials : int, optional
        Maximum number of trials.
    jobs : int, default=1
        Number of processes, which share the threads.
    storage : str or Path, optional
        SQLite file of the search; a search in an existing file is resumed.
    runtime : Runtime, optional
        Threads, device and progress.
    report : callable, optional
        Called with the optuna study after each trial of this process.

    Returns
    -------
    Tuned
        The settings and how good they are; `Tuned.save` writes a preset.
    """
    require("searches for settings", "tune")
    given, runtime = dict(settings or {}), runtime or Runtime()
    check_parameters(model, given)
    began = time.time()
    documents, classes = split_documents(X, y, label_names, validation)
    default, workspace = first_model(model, given, documents, classes.size, runtime, jobs)
    with stored(storage) as path:
        search = shared_search(default, given, documents.Y, path, began + seconds, trials)
        fingerprint = search_fingerprint(documents, model, given)
        study = open_study(search, fingerprint)
        with helpers(search, fingerprint, workspace, jobs):
            kept: dict[int, Sums] = {}
            try:
                run_trials(study, search, workspace, kept, report)
            except KeyboardInterrupt:
                runtime.reporter.note("stopped: the best settings so far are kept")
        return outcome(study, search, workspace, kept, model, given)


def shared_search(
    default: LinearSettings,
    given: Mapping[str, Any],
    Y: sp.csr_matrix,
    path: Path,
    until: float,
    trials: int | None,
) -> SharedSearch:
    """What all processes know of the search."""
    costs, space = costs_of(default, given, Y), dimensions(default, given, Y.shape[1])
    return SharedSearch(default, costs, space, path, until, trials, default.seed)


def search_fingerprint(documents: SplitDocuments, kind: str, given: Mapping[str, Any]) -> str:
    """What a search that is resumed must have in common with the stored one."""
    texts = [*documents.texts, "", *documents.held_texts, repr((kind, sorted(given.items())))]
    return data_fingerprint(texts, documents.Y, documents.held_labels)


def split_documents(
    X: Sequence[str],
    y: object,
    label_names: Sequence[object] | None,
    validation: tuple[Sequence[str], Any] | None,
) -> tuple[SplitDocuments, np.ndarray]:
    """The documents to train on and those to evaluate on, and the names of the labels."""
    texts = list(X)
    for number, text in enumerate(texts):
        check_text(text, number)
    Y, classes = read_labels(y, label_names)
    check_count(len(texts), Y)
    if validation is not None:
        held_texts, held_y = validation
        held_Y = align(held_y, classes, unseen=False, input_name="validation labels")
        check_count(len(held_texts), held_Y, "validation: ")
        return SplitDocuments(texts, Y, list(held_texts), held_Y), classes
    held = held_out(hashes_of(texts))
    kept = np.setdiff1d(np.arange(len(texts)), held)
    if not held.size:
        raise TreetopError(
            f"{len(texts)} documents are too few to hold some out: pass validation documents"
        )
    own = [texts[row] for row in kept], Y[kept]
    return SplitDocuments(*own, [texts[row] for row in held], Y[held]), classes


def first_model(
    kind: str,
    given: dict[str, Any],
    documents: SplitDocuments,
    labels: int,
    runtime: Runtime,
    jobs: int,
) -> tuple[LinearSettings, Workspace]:
    """Train the defaults: their settings, decided for the data, and what all trials need."""
    parameters = PARAMETERS[kind]
    switched_off = [name for name in ("calibration", "fine_tune") if name in parameters.defaults]
    quick: dict[str, Any] = dict.fromkeys(switched_off, False)
    estimator: Any = KINDS[kind](**{**quick, **given})
    names = [str(number) for number in range(labels)]
    estimator.fit(documents.texts, documents.Y, label_names=names, runtime=runtime)
    model, default = estimator.model_, estimator.model_.settings
    if isinstance(default, TransformerSettings):
        if default.fine_tune:
            raise TreetopError("searches keep the encoder frozen: leave out fine_tune")
        encoder = model.feature_map.encoder
        vectors = encoder.embed(documents.texts, runtime)
        documents = documents._replace(
            vectors=vectors, held_vectors=encoder.embed(documents.held_texts, runtime)
        )
    threads = max(1, runtime.thread_count // jobs)
    metric = METRICS.get(default.optimize, default.optimize)
    if default.tree != "flat" and "tree" not in given:
        default = replace(default, tree="auto")  # `leaf` and `branching` decide
    return default, Workspace(documents, metric, threads)


def costs_of(
    default: LinearSettings, given: Mapping[str, Any], Y: sp.csr_matrix
) -> dict[bool, LinearSettings]:
    """The defaults with and without cost-sensitive learning, each with its own λ and α."""
    other = replace(
        default,
        cost_sensitive=not default.cost_sensitive,
        lambda_=default.lambda_ if "lambda_" in given else None,
        alpha=default.alpha if "alpha" in given else None,
    )
    return {
        bool(default.cost_sensitive): default,
        not default.cost_sensitive: auto.with_costs(other, Y, None),
    }


@contextmanager
def stored(storage: str | Path | None) -> Iterator[Path]:
    """The file of the search: the user's own, or a temporary one."""
    if storage is not None:
        yield Path(storage).absolute()
        return
    with tempfile.TemporaryDirectory(prefix="treetop-") as folder:
        yield Path(folder) / "study.db"
