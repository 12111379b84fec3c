"""Whether an encoder pays, frozen or fine-tuned: decided on held-out documents of the training data.

Words alone, the frozen encoder and the fine-tuned one are each trained on a part of the labels, with
all their documents. Each must be significantly better than the best one before it, which costs less.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from treetop.estimators.linear import XRLinear
from treetop.estimators.transformer import XRTransformer
from treetop.evaluation.context import Context, frequencies, ranking_context
from treetop.evaluation.metrics import METRICS, metric_of
from treetop.features.encoders.opening import require_torch
from treetop.model.seen import hashes_of
from treetop.runtime import Runtime
from treetop.runtime.progress import Reporter
from treetop.settings.making import PARAMETERS
from treetop.settings.names import renamed
from treetop.settings.quality import UPPER_LAYERS, quality_settings
from treetop.training.folds import held_out
from treetop.training.inputs import read_labels
from treetop.training.sampling import documents_with, sampled_labels
from treetop.tuning.search import share_better

# The documents of a trial are a part of the user's: at most so many, and 30 % of them are held out.
MOST_DOCUMENTS, HELD_OUT = 4000, 0.3
# With fewer documents or labels, a trial would mostly measure chance.
FEWEST_DOCUMENTS, FEWEST_LABELS = 500, 32
METRIC, K = "nDCG@5", 5
# How surely a candidate must be better.
CONFIDENCE = 0.95
# What a trial leaves out: neither changes which features are best.
BRIEF = {"calibration": False, "competition": False, "keep_documents": False}


class Candidate(NamedTuple):
    """One way to use an encoder, or to use none."""

    name: str
    kind: str
    settings: dict[str, Any]  # those that it stands for

    def estimator(self, given: Mapping[str, Any]) -> XRLinear | XRTransformer:
        """An estimator with the settings that were given and with its own."""
        known = PARAMETERS[self.kind].defaults
        settings = {name: value for name, value in given.items() if name in known}
        kind = XRLinear if self.kind == XRLinear.kind else XRTransformer
        return kind(**{**settings, **self.settings})


class EncoderTrial(NamedTuple):
    """Documents to train on, and held-out ones, with some of the labels."""

    texts: list[str]
    Y: sp.csr_matrix  # float32, (documents, sampled labels)
    held_texts: list[str]
    held_labels: sp.csr_matrix


class Decision(NamedTuple):
    """What pays, and a line that says why."""

    candidate: Candidate
    line: str


WORDS = Candidate("words alone", XRLinear.kind, {})
FROZEN = Candidate("frozen encoder", XRTransformer.kind, {"fine_tune": False})
UPPER = Candidate(f"{UPPER_LAYERS} layers tuned", XRTransformer.kind, {"tuned_layers": UPPER_LAYERS})
WHOLE = Candidate("all layers tuned", XRTransformer.kind, {})
AS_GIVEN = Candidate("encoder as set", XRTransformer.kind, {})


def candidates_for(device: str, given: Mapping[str, Any]) -> tuple[Candidate, ...]:
    """What competes on a device: on a CPU, all layers would take several times as long."""
    if given.keys() & {"fine_tune", "tuned_layers"}:
        return (WORDS, AS_GIVEN)
    return (WORDS, FROZEN, UPPER if device == "cpu" else WHOLE)


def trial_of(texts: Sequence[str], Y: sp.csr_matrix, seed: int) -> EncoderTrial | None:
    """Choose the documents of a trial; None if there are too few."""
    counts, step = np.bincount(Y.indices, minlength=Y.shape[1]), 1
    labels = sampled_labels(counts, step, seed)
    while documents_with(Y, labels).size > MOST_DOCUMENTS and labels.size >= 2 * FEWEST_LABELS:
        step *= 2
        labels = sampled_labels(counts, step, seed)
    rows = documents_with(Y, labels)
    rows = np.sort(np.random.default_rng(seed).permutation(rows)[:MOST_DOCUMENTS])
    if rows.size < FEWEST_DOCUMENTS or labels.size < 2:
        return None
    held = rows[held_out(hashes_of([texts[row] for row in rows]), share=HELD_OUT, most=rows.size)]
    own = np.setdiff1d(rows, held)
    known = labels[np.bincount(Y[own].indices, minlength=Y.shape[1])[labels] > 0]
    return EncoderTrial(
        [texts[row] for row in own],
        sp.csr_matrix(Y[own][:, known], dtype=np.float32),
        [texts[row] for row in held],
        sp.csr_matrix(Y[held][:, known], dtype=np.float32),
    )


def encoder_that_pays(
    trial: EncoderTrial, candidates: Sequence[Candidate], given: Mapping[str, Any], runtime: Runtime
) -> Decision:
    """Train each candidate on the trial; the first wins unless a later one is significantly better."""
    best, reached, said = candidates[0], None, []
    for candidate in candidates:
        runtime.reporter.step(f"trial: {candidate.name}")
        context = context_of(candidate, trial, given, runtime)
        value = METRICS["nDCG"].function(context)
        said.append(f"{candidate.name} {value:.3f}")
        if reached is None or surely_better(context, reached, trial, int(given.get("seed", 0))):
            best, reached = candidate, context
    return Decision(best, f"{best.name}: {METRIC} on held-out documents: {', '.join(said)}")


def context_of(
    candidate: Candidate, trial: EncoderTrial, given: Mapping[str, Any], runtime: Runtime
) -> Context:
    """Train a candidate and rank the labels of the held-out documents."""
    quiet = runtime.changed(reporter=Reporter(), verbose=False)
    settings = {**without_levels(given), **BRIEF}
    estimator = candidate.estimator(settings).fit(trial.texts, trial.Y, runtime=quiet)
    return ranking_context(
        trial.held_labels,
        estimator.predict_scores(trial.held_texts, K, runtime=quiet),
        K,
        train_counts=frequencies(trial.Y),
        train_documents=trial.Y.shape[0],
    )


def without_levels(given: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out trees and figures by level: with fewer labels, there may be fewer levels."""
    return {
        name: value
        for name, value in given.items()
        if name == "encoder"
        or (name not in ("tree", "first_tree") and not (isinstance(value, str) and "/" in value))
    }


def surely_better(context: Context, other: Context, trial: EncoderTrial, seed: int) -> bool:
    """Whether a context has a significantly higher metric than another, by a paired bootstrap."""
    metric, k = metric_of(METRIC)
    assert metric.sums is not None
    own, before = (metric.sums(one.at(k)) for one in (context, other))
    return share_better(own, before, trial.held_labels.shape, seed) >= CONFIDENCE


def best_estimator(
    X: Sequence[str],
    y: Any,
    *,
    encoder: str = "minilm",
    label_names: Sequence[object] | None = None,
    runtime: Runtime | None = None,
    **settings: Any,
) -> XRLinear | XRTransformer:
    """Make the estimator of the quality ``"best"``, with an encoder if one pays on your data.

    Words alone, the encoder frozen, and its upper layers fine-tuned (all layers on a GPU) are tried on
    a part of the documents and compared on others that were held out. Each must be significantly
    better than what costs less. The same data and seed give the same choice.

    Parameters
    ----------
    X, y, label_names
        Texts and labels, as for `XRLinear.fit`.
    encoder : str, default="minilm"
        Encoder that may be used.
    runtime : Runtime, optional
        Threads and device of the trials.
    **settings
        Settings to keep.

    Returns
    -------
    XRLinear or XRTransformer
        An estimator that is not fitted yet.

    Examples
    --------
    >>> import treetop
    >>> texts, labels = ["a red apple", "a green pear"] * 9, [["red"], ["green"]] * 9
    >>> treetop.best_estimator(texts, labels).kind  # too few documents to try an encoder
    'xr-linear'
    """
    Y, _ = read_labels(y, label_names)
    given = renamed({**settings, "encoder": encoder})
    place = runtime or PARAMETERS[XRTransformer.kind].runtime(given)
    decision = decided_for(list(X), Y, given, place)
    candidate = WORDS if decision is None else decision.candidate
    given = {**quality_settings("best", candidate.kind), **given}
    return candidate.estimator(given)


def decided_for(
    texts: Sequence[str],
    Y: sp.csr_matrix,
    given: Mapping[str, Any],
    runtime: Runtime,
    without_words: bool = False,
    fits: Callable[[Candidate, float], bool] | None = None,
) -> Decision | None:
    """Decide for all of the user's documents; None if there are too few.

    `without_words` leaves out words alone. `fits` says of all candidates but the first whether there is
    time to train on all documents and on such a share of them.
    """
    trial = trial_of(texts, Y, int(given.get("seed", 0)))
    if trial is None:
        return None
    require_torch()
    from treetop.features.encoders.devices import pick_device

    listed = candidates_for(pick_device(runtime.device).type, given)[without_words:]
    share = len(trial.texts) / len(texts)
    if fits is not None:
        listed = (listed[0], *(one for one in listed[1:] if fits(one, share)))
    if len(listed) == 1:
        return Decision(listed[0], f"{listed[0].name}: there is no time for more")
    return encoder_that_pays(trial, listed, given, runtime)
