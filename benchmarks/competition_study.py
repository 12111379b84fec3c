"""Measures what a competition could decide besides features, and whether its choice would hold.

    python benchmarks/competition_study.py DATA_FOLDER

A fifth of each `train` is held out; `test` is not read. Settings are compared on a sample of the labels
with all their documents, on four times as many, and, where that is affordable, on all labels: a lead
that shrinks or turns does not transfer. Character n-grams within words are scikit-learn's `char_wb`.
Results are added to benchmarks/results/competition.json after each comparison; those that are there are
not repeated.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from defaults import commit, interval, ndcg_by_document
from linear import machine, versions
from sklearn.feature_extraction.text import TfidfVectorizer

from treetop import XRLinear
from treetop.data import open_data
from treetop.evaluation.context import ranking_context
from treetop.labels.vocabulary import vocabulary_of
from treetop.training.sampling import documents_with, sampled_labels

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "competition.json"
HELD_OUT, SEED = 0.2, 0
# One of so many labels is in the smallest sample; one of a quarter as many in the next. With a last 1,
# all labels follow.
STEPS = {
    "debian-debtags-pl": (4, 1),
    "debian-debtags-ru": (4, 1),
    "debian-debtags-ja": (4, 1),
    "debian-debtags-de": (4, 1),
    "cooking": (4, 1),
    "debian-depends": (128, 32),
}
# What is compared: the two sides, and the features that both use.
SIDES: dict[str, tuple[dict[str, object], dict[str, object]]] = {
    "R̂": ({"cost_sensitive": True}, {"cost_sensitive": False}),
    "flat": ({"tree": "flat"}, {"tree": "auto", "flat_labels": 0}),
}
FEATURES = "word:1"
WITHIN_WORDS = ("debian-debtags-pl", "debian-debtags-ru", "debian-debtags-de", "cooking")
LENGTHS = ((4, 4), (3, 5))


class Documents:
    """The training documents of a data set, in two parts."""

    def __init__(self, folder: Path) -> None:
        split = open_data(folder).split("train")
        self.texts = list(split.texts)
        self.Y = sp.csr_matrix(vocabulary_of(split.labels).encode(split.labels), dtype=np.float32)
        shuffled = np.random.default_rng(SEED).permutation(len(self.texts))
        held = round(HELD_OUT * len(self.texts))
        self.held, self.rest = np.sort(shuffled[:held]), np.sort(shuffled[held:])

    def sampled(self, step: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows to train on, rows to evaluate on, and labels: one of every `step`."""
        counts = np.bincount(self.Y[self.rest].indices, minlength=self.Y.shape[1])
        labels = sampled_labels(counts, step, SEED)
        with_label = documents_with(self.Y, labels)
        return np.intersect1d(self.rest, with_label), np.intersect1d(self.held, with_label), labels

    def scores(self, step: int, settings: dict[str, object]) -> np.ndarray:
        """nDCG@5 of each held-out document with these settings, in points."""
        rows, held, labels = self.sampled(step)
        model = XRLinear(ngrams=FEATURES, competition=False, calibration=False, threads=2, **settings)
        model.fit([self.texts[row] for row in rows], self.Y[rows][:, labels])
        return self.ndcg(model.predict_scores([self.texts[row] for row in held], k=5), held, labels)

    def within(self, analyzer: str, lengths: tuple[int, int]) -> np.ndarray:
        """nDCG@5 of each held-out document, in points, with an analyzer of scikit-learn."""
        rows, held, labels = self.sampled(1)
        vectorizer = TfidfVectorizer(
            analyzer=analyzer, ngram_range=lengths, sublinear_tf=True, max_features=500_000
        )
        X = vectorizer.fit_transform([self.texts[row] for row in rows]).astype(np.float32)
        model = XRLinear(calibration=False, threads=2).fit(X, self.Y[rows][:, labels])
        X = vectorizer.transform([self.texts[row] for row in held]).astype(np.float32)
        return self.ndcg(model.predict_scores(X, k=5), held, labels)

    def ndcg(self, scores: sp.csr_matrix, held: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """nDCG@5 by document."""
        return 100 * ndcg_by_document(ranking_context(self.Y[held][:, labels], scores, 5))


def compared(first: np.ndarray, second: np.ndarray) -> dict[str, float]:
    """The values of two sides, and their difference with its interval."""
    low, high = interval(first - second)
    difference = float((first - second).mean())
    values = {"first": float(first.mean()), "second": float(second.mean())}
    return {**values, "difference": difference, "low": low, "high": high}


def comparisons(name: str, documents: Documents, done: dict):
    """Yield what is not done yet: a key, and the two sides by document."""
    for step in STEPS[name]:
        for side, (first, second) in SIDES.items():
            key = f"{side} 1/{step}"
            if key not in done:
                yield key, documents.scores(step, first), documents.scores(step, second)
    for lengths in LENGTHS if name in WITHIN_WORDS else ():
        key = f"within words {lengths[0]}-{lengths[1]}"
        if key not in done:
            yield key, documents.within("char_wb", lengths), documents.within("char", lengths)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--sets", nargs="+", default=list(STEPS), choices=list(STEPS))
    parser.add_argument("--results", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    results = json.loads(chosen.results.read_text()) if chosen.results.exists() else {}
    results.update(machine=machine(), versions=versions({}), seed=SEED, commit=commit())
    for name in chosen.sets:
        documents = Documents(chosen.data / name)
        done = results.setdefault("sets", {}).setdefault(name, {})
        for key, first, second in comparisons(name, documents, done):
            done[key] = compared(first, second)
            print(name, key, json.dumps(done[key]), flush=True)
            chosen.results.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
