"""What a model says about documents that it was not trained on, also about their first words alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from treetop.errors import TreetopError
from treetop.features.given import parts_of, with_features
from treetop.features.hybrid import Features
from treetop.features.words.tfidf import Tfidf
from treetop.labels.alignment import align
from treetop.model.model import Model
from treetop.model.predictor import Predictor
from treetop.ranking.ranker import Ranker
from treetop.runtime import Runtime
from treetop.settings.schema import LinearSettings
from treetop.training.calibrating import FEWEST_DOCUMENTS, OutOfFold, fit_calibration
from treetop.training.choosing import fit_thresholds
from treetop.training.documents import TrainingDocuments
from treetop.training.folds import held_out
from treetop.training.known import KnownFeatures

# Labels per document that are looked at; and the numbers of words that copies of texts are cut to, of
# how many documents each, and how many labels of theirs.
LISTED = 20
CUTS, CUT_DOCUMENTS, CUT_LISTED = (5, 20, 80, 320), 500, 10
# Of a text with longer words than this, such as one without spaces, so many characters are a word.
LONGEST_WORD, CHARACTERS = 15, 3


def first_words(text: str, count: int) -> str:
    """The beginning of a text."""
    words = text.split()
    if len(text) > LONGEST_WORD * max(1, len(words)):
        return text[: CHARACTERS * count]
    return " ".join(words[:count])


def fold_of(hashes: Sequence[int], settings: LinearSettings) -> tuple[np.ndarray, np.ndarray | None]:
    """The rows to hold out, and a mark (uint8) per document, 1 for those.

    There are no marks if nothing is calibrated, or if the documents are too few to learn from.
    """
    held = held_out(hashes)
    if not settings.calibration or held.size < FEWEST_DOCUMENTS:
        return held, None
    marks = np.zeros(len(hashes), np.uint8)
    marks[held] = 1
    return held, marks


def with_confidence(
    model: Model,
    of_fold: Sequence[Ranker],
    X: Features,
    held: np.ndarray,
    texts: Sequence[str] | None,
    truth: sp.csr_matrix,
    runtime: Runtime,
) -> Model:
    """The model with a calibration and thresholds; as it is if there are no rankers of a fold.

    Parameters
    ----------
    model : Model
        The model.
    of_fold : sequence of Ranker
        Its rankers, trained without the held-out documents.
    X : Features
        Features of all documents.
    held : int64 array
        Rows of the held-out documents.
    texts : sequence of str, optional
        Their texts, if features can be computed from them.
    truth : CSR of shape (number of held-out documents, L)
        Their labels.
    runtime : Runtime
        Where to work.
    """
    if not of_fold:
        return model
    runtime.reporter.step("calibration")
    own_counts = np.bincount(truth.indices, minlength=truth.shape[1])
    fold = replace(model, rankers=tuple(of_fold), label_counts=model.label_counts - own_counts)
    words, documents, known = model.feature_map.words, X[held], None
    if texts is not None and isinstance(words, Tfidf):
        known = KnownFeatures.without(X, held, words.widths)
        documents = known.of(documents)
    evidence = evidence_of(fold, documents, texts, truth, runtime, known)
    return replace(model, **confidence_parts(evidence, fold.label_counts))


def with_confidence_on(model: Model, data: TrainingDocuments, runtime: Runtime) -> Model:
    """The model with a calibration and thresholds from the validation documents."""
    runtime.reporter.step("calibration")
    documents = with_features(data.held_texts, data.held_features)
    features = model.features(documents, runtime)
    texts = data.held_texts if data.features is None else None
    evidence = evidence_of(model, features, texts, data.held_labels, runtime)
    return replace(model, **confidence_parts(evidence, model.label_counts))


def confidence_parts(evidence: Sequence[OutOfFold], label_counts: np.ndarray) -> dict[str, Any]:
    """The parts of a model that are fitted to the evidence, by name; none if it is too little."""
    calibration = fit_calibration(evidence, label_counts)
    if calibration is None:
        return {}
    whole = evidence[0]
    probabilities = calibration.of(whole.scores, whole.lengths, label_counts)
    thresholds = fit_thresholds(probabilities, whole.truth)
    return {"calibration": calibration, "thresholds": thresholds}


def evidence_of(
    model: Predictor,
    features: Any,
    texts: Sequence[str] | None,
    truth: sp.csr_matrix,
    runtime: Runtime,
    known: KnownFeatures | None = None,
) -> list[OutOfFold]:
    """Scores of documents, and of the first words of some; `texts` are cut, if there are any.

    Texts that are cut have the `known` n-grams alone, unless that is None.
    """
    scores = model.scores_from(features, LISTED, runtime)
    evidence = [OutOfFold(scores, model.lengths(features), truth)]
    for words in CUTS if texts is not None else ():
        assert texts is not None
        rows = [row for row, text in enumerate(texts) if first_words(text, words) != text]
        rows = rows[:: -(-len(rows) // CUT_DOCUMENTS) or 1]
        if rows:
            own = model.features([first_words(texts[row], words) for row in rows], runtime)
            own = own if known is None else known.of(own)
            scores = model.scores_from(own, CUT_LISTED, runtime)
            evidence.append(OutOfFold(scores, model.lengths(own), truth[np.array(rows)]))
    return evidence


def calibrated_parts(model: Predictor, documents: Any, y: Any, runtime: Runtime) -> dict[str, Any]:
    """Calibration and thresholds of a model from documents that it was not trained on."""
    texts, ready = parts_of(documents)
    if texts is not None:
        texts = list(texts)
        documents = texts if ready is None else documents
    truth = align(y, model.classes, unseen=False)
    features = model.features(documents, runtime)
    cut = texts if ready is None and model.reads_texts else None
    parts = confidence_parts(evidence_of(model, features, cut, truth, runtime), model.label_counts)
    if not parts:
        raise TreetopError(
            f"{truth.shape[0]:,} documents are too few to calibrate on: give some hundred, with labels "
            "that the model knows"
        )
    return parts
