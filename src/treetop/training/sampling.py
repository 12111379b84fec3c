"""The sample on which settings compete: some of the labels with all their documents.

A sample of the documents would thin out the labels and so favor what suits rare ones. Therefore labels
are sampled, evenly by frequency, with all their documents. How many, follows from the work that the
competition may take, which is counted, not timed: the same data give the same sample on any machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from treetop.model.seen import hashes_of
from treetop.settings import auto
from treetop.settings.schema import LinearSettings
from treetop.training.folds import held_out

# Share of the sample's documents that are held out from the trials.
HELD_OUT = 0.3
# Work of a competition, as a share of that of the training that follows; and the most, however large
# the data are: less than a minute of one processor.
SHARE, MOST_WORK = 0.5, 1e9
# Labels are trained together in blocks of this many.
BLOCK = 16
# Fewer labels than this are not sampled: there documents are, and at least so many.
FEWEST_LABELS, FEWEST_DOCUMENTS = 32, 800
# Work per character of text, in the time that splitting a character of text into words takes: to read
# it for all candidates, and to train their rankers, per block of labels. Then the same for the final
# training on the features that the rules choose.
READ_ALL, TRY_ALL = 5.0, 2.5
READ, TRAIN = 2.5, 0.35


class TrialSample(NamedTuple):
    """Documents of a trial, and those that are held out from it."""

    texts: list[str]
    Y: sp.csr_matrix  # float32, (documents, all labels), with the relevances
    weights: np.ndarray | None  # float32, by document; None: all 1
    labels: np.ndarray  # int64, the sampled columns of Y
    held_texts: list[str]
    held_labels: sp.csr_matrix  # float32, (held-out documents, sampled labels)


class SampledFrom(NamedTuple):
    """The documents to sample from, and those of a validation split, if there is one."""

    texts: Sequence[str]
    Y: sp.csr_matrix  # float32, (N, L)
    weights: np.ndarray | None  # float32, (N,)
    held_texts: Sequence[str] = ()
    held_labels: sp.csr_matrix | None = None  # (validation documents, L)


def sample_of(documents: SampledFrom, settings: LinearSettings, times: float = 1.0) -> TrialSample:
    """Sample labels with their documents, for so many times the work of a competition."""
    texts, Y, weights = documents[:3]
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    rows, labels = affordable(Y, lengths, settings, times)
    if documents.held_labels is None or not documents.held_texts:
        held = rows[held_out(hashes_of([texts[row] for row in rows]), share=HELD_OUT)]
        rows = np.setdiff1d(rows, held)
        held_texts, held_Y = texts, Y
    else:
        held = some_of(documents_with(documents.held_labels, labels), rows.size, settings.seed)
        held_texts, held_Y = documents.held_texts, documents.held_labels
    return TrialSample(
        [texts[row] for row in rows],
        Y[rows],
        None if weights is None else weights[rows],
        labels,
        [held_texts[row] for row in held],
        sp.csr_matrix(held_Y[held][:, labels]),
    )


def some_of(rows: np.ndarray, training: int, seed: int) -> np.ndarray:
    """As many held-out rows as a competition without a validation split would have, at random."""
    most = max(FEWEST_DOCUMENTS, int(training * HELD_OUT))
    return np.sort(np.random.default_rng(seed).permutation(rows)[:most])


def affordable(
    Y: sp.csr_matrix, lengths: np.ndarray, settings: LinearSettings, times: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Choose rows and labels that may be used; `lengths` are the characters of each document."""
    counts = np.bincount(Y.indices, minlength=Y.shape[1])
    of_training = int(lengths.sum()) * (READ + TRAIN * training_blocks(Y, settings))
    limit = times * min(MOST_WORK, SHARE * of_training)
    step, occurring = 1, np.count_nonzero(counts)
    while True:
        labels = sampled_labels(counts, step, settings.seed)
        rows = documents_with(Y, labels)
        cost = READ_ALL + TRY_ALL * -(-labels.size // BLOCK)
        if cost * int(lengths[rows].sum()) <= limit:
            return rows, labels
        if occurring < 2 * step * FEWEST_LABELS:
            break
        step *= 2
    rng = np.random.default_rng(settings.seed)
    shuffled = rng.permutation(rows)
    count = int((cost * np.cumsum(lengths[shuffled]) <= limit).sum())
    return np.sort(shuffled[: max(count, FEWEST_DOCUMENTS)]), labels


def share_of_training(Y: sp.csr_matrix, lengths: np.ndarray, settings: LinearSettings) -> float:
    """The counted work of a competition, as a share of that of training on the rules' features."""
    rows, labels = affordable(Y, lengths, settings)
    cost = (READ_ALL + TRY_ALL * -(-labels.size // BLOCK)) * int(lengths[rows].sum())
    return float(cost / (int(lengths.sum()) * (READ + TRAIN * training_blocks(Y, settings))))


def training_blocks(Y: sp.csr_matrix, settings: LinearSettings) -> float:
    """Blocks of labels that a document is an example for, in the mean, in one tree."""
    labels = Y.shape[1]
    if auto.is_flat(settings, labels):
        return float(labels / BLOCK)
    levels = [*(auto.refined_sizes(settings, labels) or [labels // settings.leaf]), labels]
    per_document = Y.nnz / max(1, Y.shape[0])
    blocks = levels[0] / BLOCK
    for above, below in zip(levels[:-1], levels[1:], strict=True):
        blocks += min(per_document, above) * max(1.0, below / above / BLOCK)
    return float(blocks)


def sampled_labels(counts: np.ndarray, step: int, seed: int) -> np.ndarray:
    """Choose one of every `step` labels that are next to each other in the order of frequency.

    `counts` are the documents per label. Returns label numbers, ascending. Labels without documents
    are left out.
    """
    by_frequency = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
    starts = np.arange(0, by_frequency.size, step)
    places = starts + np.random.default_rng(seed).integers(0, step, starts.size)
    return np.sort(by_frequency[places[places < by_frequency.size]])


def documents_with(Y: sp.csr_matrix, labels: np.ndarray) -> np.ndarray:
    """Rows of the documents that have any of these labels, ascending."""
    wanted = np.zeros(Y.shape[1], bool)
    wanted[labels] = True
    labelled = np.flatnonzero(np.diff(Y.indptr))
    if not labelled.size:
        return labelled
    found = np.logical_or.reduceat(wanted[Y.indices], Y.indptr[labelled])
    return np.asarray(labelled[found])
