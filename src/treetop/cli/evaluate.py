"""What the command ``evaluate`` does."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

import treetop
from treetop import metrics
from treetop.base import FittedMixin
from treetop.cli.console import Console
from treetop.cli.documents import documents_for, split_name
from treetop.cli.model_options import EvaluateOptions
from treetop.cli.paths import check_model_and_data, check_split_has_labels, read_data
from treetop.data import Dataset, Split
from treetop.errors import TreetopError
from treetop.evaluation.metrics import computed_metrics
from treetop.evaluation.propensity import DEFAULT, kind_of_data
from treetop.evaluation.result import Evaluation
from treetop.labels.alignment import align
from treetop.model import layout as store
from treetop.model.card import card
from treetop.model.predictor import Predictor
from treetop.model.seen import hashes_of
from treetop.runtime import Runtime
from treetop.runtime.anywhere import using_cluster
from treetop.runtime.progress import Reporter

AUTO = "auto"
# Documents per call of `predict_scores`, so that progress can be shown.
CHUNK_DOCUMENTS = 4096
# From this share of documents that were trained on, metrics say nothing.
TOO_MANY_SEEN = 0.5


@dataclass(frozen=True)
class Judged:
    """The documents of a split as one model takes them, and the metrics of the model on them."""

    split: Split
    name: str  # of the split
    result: Evaluation
    seen: float  # share of the documents that the model was trained on


def evaluate_model(options: EvaluateOptions, console: Console | None = None) -> None:
    """Evaluate a model on a split and print the metrics; `keep` saves them in the model folder."""
    console = console or Console()
    check_metrics(options.propensity, options.also)
    check_model_and_data(options.model, options.data, "evaluate")
    with console.progress() as report:
        report.step("loading model")
        estimator = treetop.load(str(options.model))
        dataset = read_data(options.data, options, report)
        judged = judge(
            estimator,
            dataset,
            options,
            report,
            cluster=options.cluster,
            threshold=options.threshold,
            also=options.also,
        )
    result = judged.result
    record = result.with_intervals() if options.keep or options.json else {}
    if options.keep:
        where = f"{options.data.name}, {judged.name}: {len(judged.split):,} documents."
        if judged.seen:
            where += f" {judged.seen:.0%} of them were trained on."
        store.keep_measures(options.model, {"measured_on": where, **record}, card)
    if options.json:
        console.json(record)
    else:
        print(result)


def check_metrics(propensity: str, also: Iterable[str] = ()) -> None:
    """Raise for an unknown propensity model or metric, before any work is done."""
    if propensity != AUTO:
        metrics.propensity_constants(propensity)
    computed_metrics(also)


class JudgingOptions(Protocol):
    """The options that evaluating a model on a split depends on."""

    @property
    def data(self) -> Path: ...  # noqa: D102
    @property
    def split(self) -> str | None: ...  # noqa: D102
    @property
    def propensity(self) -> str: ...  # noqa: D102
    @property
    def allow_training_data(self) -> bool: ...  # noqa: D102


def judge(
    estimator: FittedMixin,
    dataset: Dataset,
    options: JudgingOptions,
    report: Reporter,
    *,
    cluster: str | None = None,
    **arguments: Any,
) -> Judged:
    """Evaluate an estimator on the chosen split; `arguments` are those of `evaluate_split`."""
    name = split_name(dataset, options.split)
    split = documents_for(estimator.model_, dataset.splits[name], dataset.format, report)
    check_split_has_labels(split, "compare predictions with")
    of_training = seen_in_training(estimator.model_, split)
    if not options.allow_training_data:
        check_unseen(of_training, f"{options.data}, {name}", report)
    runtime = Runtime(cluster=cluster, reporter=report)
    with using_cluster(runtime):
        result = evaluate_split(
            estimator,
            split,
            dataset.label_names,
            report=report,
            runtime=runtime,
            propensity=propensity_for(options, estimator.model_, report),
            **arguments,
        )
    return Judged(split, name, result, of_training)


def propensity_for(options: JudgingOptions, model: Predictor, report: Reporter) -> str:
    """The propensity model asked for, else that of the data set or of the preset, which is noted."""
    if options.propensity != AUTO:
        return options.propensity
    path = options.data.resolve()
    named = [(name, "data set") for name in (path.name, path.parent.name)]
    for name, what in (*named, (model.preset, "preset")):
        if kind := kind_of_data(name):
            report.note(f"propensities: {kind}, as is usual for the {what} {name}")
            return kind
    return DEFAULT


def seen_in_training(model: Predictor, split: Split) -> float:
    """The share of the documents of a split that a model was trained on, as far as it is known."""
    documents = split.documents if model.reads_texts or split.X is None else split.X
    if model.seen is None or documents is None:
        return 0.0
    seen, compared = model.seen.common(hashes_of(documents))
    return seen / compared if compared else 0.0


def check_unseen(share: float, source: str, report: Reporter) -> None:
    """Raise if most documents were trained on; note it if only some were."""
    if share >= TOO_MANY_SEEN:
        raise TreetopError(
            f"{source}: the model was trained on {share:.0%} of these documents: evaluate on others "
            "(see data split and train --hold-out), or give --allow-training-data"
        )
    if share:
        report.note(
            f"{source}: the model was trained on {share:.1%} of these documents: metrics are too high"
        )


def evaluate_split(
    estimator: FittedMixin,
    split: Split,
    names: list[str] | None,
    k: tuple[int, ...] = (1, 3, 5, 10),
    report: Reporter | None = None,
    threshold: float | None = None,
    runtime: Runtime | None = None,
    depth: int = 0,
    **options: Any,
) -> Evaluation:
    """Every metric of an estimator on a split; labels unknown to it count as missed.

    At least `depth` labels are predicted per document; with `threshold`, as many as reach it.
    """
    labels, depth = split.named_labels(names), max(*k, depth)
    if split.excluded is not None:
        depth += int(np.diff(split.excluded.indptr).max(initial=0))
    scores = predict_in_chunks(estimator, split, depth, report, runtime)
    while threshold is not None and is_cut_off(scores, depth, threshold):
        depth *= 4
        scores = predict_in_chunks(estimator, split, depth, report, runtime)
    if split.excluded is not None:
        excluded = Split(None, None, None, split.excluded).named_labels(names)
        labels, scores = without_excluded(labels, scores, excluded, estimator.classes_)
    known = metrics.known_labels(estimator)
    result = metrics.evaluate(labels, scores, k, threshold=threshold, **known, **options)
    return result.with_documents(split.documents, estimator)


def is_cut_off(scores: sp.csr_matrix, depth: int, threshold: float) -> bool:
    """Whether a document may have labels that reach the threshold beyond its `depth` best."""
    if depth >= scores.shape[1]:
        return False
    counts = np.diff(scores.indptr)
    lowest = np.full(scores.shape[0], np.inf)
    np.minimum.at(lowest, np.repeat(np.arange(scores.shape[0]), counts), scores.data)
    return bool((lowest[counts >= depth] >= threshold).any())


def predict_in_chunks(
    estimator: FittedMixin,
    split: Split,
    k: int,
    report: Reporter | None,
    runtime: Runtime | None = None,
    calibrated: bool = False,
) -> sp.csr_matrix:
    """Scores N x L of the documents of a split, with one step of progress per chunk.

    If `calibrated`, probabilities.
    """
    documents: Any = split.documents
    predict = estimator.predict_proba if calibrated else estimator.predict_scores
    on_cluster = runtime is not None and runtime.cluster is not None
    size = max(len(split), 1) if on_cluster else CHUNK_DOCUMENTS
    starts = range(0, max(len(split), 1), size)
    advance = (report or Reporter()).step("predicting", len(starts))
    chunks = []
    for start in starts:
        chunk = documents[start : start + size]
        chunks.append(predict(chunk, k, runtime=runtime))
        advance()
    return chunks[0] if len(chunks) == 1 else sp.csr_matrix(sp.vstack(chunks, "csr"))


def without_excluded(
    labels: list[list[str]], scores: sp.csr_matrix, excluded: list[list[str]], classes: np.ndarray
) -> tuple[list[list[str]], sp.csr_matrix]:
    """Labels and scores without the excluded pairs (in LF data sets, a page and its own title)."""
    pairs = zip(labels, map(set, excluded), strict=True)
    labels = [[name for name in line if name not in out] for line, out in pairs]
    kept = sp.csr_matrix(scores - scores.multiply(align(excluded, classes, unseen=False)))
    kept.eliminate_zeros()
    return labels, kept
