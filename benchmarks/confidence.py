"""Measures how well probabilities are calibrated, on test documents that nothing was chosen on.

    python benchmarks/confidence.py DATA … --out benchmarks/results/confidence.json

For each data set (a folder with the splits train and test) XRLinear is trained with its defaults. The
expected calibration error (ECE, 15 bins of equal size) of the best label and of the best five is given
beside what perfect calibration gives by chance, the 97.5 % quantile over labels drawn with the model's
own probabilities, and beside one isotonic regression of the raw scores on the same documents.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from commits import commit_of
from linear import machine
from transformer import versions

import treetop
from treetop.data import open_data
from treetop.labels.alignment import align
from treetop.training import out_of_fold

BINS, DRAWS, LISTED = 15, 200, 20
RANKS = (1, 5)
FREQUENCIES = ((0, 5), (5, 20), (20, 100), (100, 10**9))
FEWEST = 500  # pairs in a bucket
HERE = Path(__file__).parent


def bins_of(probabilities, hits):
    """The mean probability, the share of true labels and the size of bins of equal size."""
    order = np.array_split(np.argsort(probabilities, kind="stable"), BINS)
    return [[float(probabilities[b].mean()), float(hits[b].mean()), len(b)] for b in order if len(b)]


def ece(probabilities, hits):
    """Expected calibration error, in percent."""
    bins = np.array(bins_of(probabilities, hits))
    return 100 * float(np.average(np.abs(bins[:, 0] - bins[:, 1]), weights=bins[:, 2]))


def by_chance(probabilities, rng):
    """The 97.5 % quantile of the ECE of labels drawn with these probabilities."""
    drawn = (rng.random((DRAWS, probabilities.size)) < probabilities).astype(float)
    return float(np.quantile([ece(probabilities, hits) for hits in drawn], 0.975))


def errors(probabilities, hits, compared, rng):
    """What is reported about some pairs of document and label."""
    return {
        "pairs": int(hits.size),
        "ece": ece(probabilities, hits),
        "chance": by_chance(probabilities, rng),
        "isotonic": ece(compared, hits),
        "confidence": float(probabilities.mean()),
        "precision": float(hits.mean()),
    }


def isotonic(evidence):
    """One isotonic regression from raw scores to probabilities: the comparator."""
    from scipy.optimize import isotonic_regression

    order = np.argsort(evidence.scores.data, kind="stable")
    values = isotonic_regression(evidence.hits()[order]).x
    return lambda scores: np.interp(scores, evidence.scores.data[order], values)


def trained(texts, labels):
    """A fitted model, and the out-of-fold scores that it was calibrated on."""
    recorded, original = [], out_of_fold.confidence_parts

    def recording(evidence, counts):
        recorded.extend(evidence)
        return original(evidence, counts)

    out_of_fold.confidence_parts = recording
    try:
        return treetop.XRLinear().fit(texts, labels), recorded
    finally:
        out_of_fold.confidence_parts = original


def cut_report(model, texts, truth, compared, words, rng):
    """Errors on the first words of the texts that have more."""
    rows = [n for n, text in enumerate(texts) if out_of_fold.first_words(text, words) != text]
    if len(rows) < FEWEST:
        return None
    scores, found, hits = pairs_of(
        model, [out_of_fold.first_words(texts[n], words) for n in rows], truth[np.array(rows)]
    )
    return by_rank(scores, found, hits, compared, rng)


def pairs_of(model, texts, truth):
    """Scores and probabilities of the best labels, and which are true."""
    runtime = treetop.Runtime()
    features = model.model_.features(texts, runtime)
    scores = model.model_.scores_from(features, LISTED, runtime)
    lengths = model.model_.lengths(features)
    hits = out_of_fold.OutOfFold(scores, lengths, truth).hits()
    return scores, model.model_.probabilities(features, scores).data.astype(float), hits


def ranks_of(scores):
    return np.arange(scores.nnz) - np.repeat(scores.indptr[:-1], np.diff(scores.indptr))


def by_rank(scores, found, hits, compared, rng):
    own = compared(scores.data)
    ranks = ranks_of(scores)
    return {f"@{k}": errors(found[ranks < k], hits[ranks < k], own[ranks < k], rng) for k in RANKS}


def promised(model, found, hits, total):
    """Precision and share of the true labels at the thresholds of promised precisions."""
    results = {}
    for precision in (0.9, 0.95):
        promise = model.model_.thresholds.for_precision(precision)
        chosen = found >= promise.threshold
        results[str(precision)] = {
            "precision": float(hits[chosen].mean()) if chosen.any() else None,
            "share": float(hits[chosen].sum() / total),
            "labels": int(chosen.sum()),
        }
    return results


def micro_f1(model, found, hits, total):
    """Micro-F1 at the model's threshold, and the best of any threshold on test."""

    def score(threshold):
        chosen = found >= threshold
        return 200 * float(hits[chosen].sum() / (chosen.sum() + total))

    tried = np.unique(np.quantile(found, np.linspace(0.3, 1, 500)))
    own = model.model_.thresholds.named("micro-F1")
    return {"at_threshold": score(own), "best": max(map(score, tried))}


def splits_of(data, name):
    """Texts and labels of a split."""
    split = data.split(name)
    return list(split.texts), list(split.labels)


def measure(folder):
    """Everything about one data set."""
    rng = np.random.default_rng(0)
    data = open_data(folder)
    texts, labels = splits_of(data, "train")
    trained_on = len(texts)
    begun, cpu = time.perf_counter(), time.process_time()
    model, evidence = trained(texts, labels)
    seconds, cpu = time.perf_counter() - begun, time.process_time() - cpu
    texts, labels = splits_of(data, "test")
    truth = sp.csr_matrix(align(labels, model.classes_, unseen=False))
    total = sum(len(set(row)) for row in labels)
    compared = isotonic(evidence[0])
    scores, found, hits = pairs_of(model, texts, truth)
    ranks, counts = ranks_of(scores), model.train_counts_[scores.indices]
    frequency = {}
    for low, high in FREQUENCIES:
        inside = (counts >= low) & (counts < high) & (ranks < RANKS[-1])
        if inside.sum() >= FEWEST:
            own = compared(scores.data[inside])
            frequency[f"{low}-{high}"] = errors(found[inside], hits[inside], own, rng)
    return {
        "documents": [trained_on, len(texts)],
        "held_out": int(evidence[0].scores.shape[0]),
        "seconds": seconds,
        "cpu_seconds": cpu,
        "all": by_rank(scores, found, hits, compared, rng),
        "bins": {f"@{k}": bins_of(found[ranks < k], hits[ranks < k]) for k in RANKS},
        "by_words": {
            str(n): cut_report(model, texts, truth, compared, n, rng) for n in out_of_fold.CUTS
        },
        "by_frequency": frequency,
        "promised": promised(model, found, hits, total),
        "micro_f1": micro_f1(model, found, hits, total),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    results = json.loads(arguments.out.read_text()) if arguments.out.exists() else {}
    for folder in arguments.data:
        own = measure(folder)
        origin = {"commit": commit_of(HERE), "machine": machine(), "versions": versions(), "seed": 0}
        results[folder.name] = {**own, **origin}
        arguments.out.write_text(json.dumps(results, indent=1) + "\n")
        print(folder.name, json.dumps(own["all"]), json.dumps(own["promised"]), own["micro_f1"])


if __name__ == "__main__":
    main()
