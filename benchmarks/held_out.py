"""Measures models that were chosen on dev once on test, and several models also as an ensemble.

    python benchmarks/held_out.py DATA MODEL … --out results.json [--split test] [--choose dev]

MODEL is a folder that `benchmarks/transformer.py` saved; its measurements (the JSON file next to the
folder) are included. The threshold of micro-F1 and the combination are chosen on the split `--choose`.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from transformer import SHOWN, measure, truth, versions

import treetop
from treetop.data import open_data
from treetop.ranking.combining import COMBINE

TAKEN = 30


def micro_f1(Y, scores, threshold):
    """Compute F1 over all pairs of document and label with a score of at least `threshold`."""
    chosen = scores.copy()
    chosen.data = (chosen.data >= threshold).astype(np.float32)
    right = chosen.multiply(Y[:, : chosen.shape[1]] > 0).sum()
    return float(2 * right / (chosen.sum() + (Y > 0).sum()))


def best_threshold(Y, scores):
    """Return the score threshold with the best micro-F1."""
    steps = np.quantile(scores.data, np.linspace(0.3, 0.995, 140))
    return float(steps[np.argmax([micro_f1(Y, scores, step) for step in steps])])


def figures(model, split, scores):
    """Return all metrics that are single numbers."""
    metrics = measure(model, split, scores=scores)
    return {name: value for name, value in metrics.items() if isinstance(value, float)}


def held_out(model, split, choose):
    """Compute the metrics on a split, with the threshold of micro-F1 chosen on another split."""
    scores = model.predict_scores(split.documents, TAKEN)
    before = model.predict_scores(choose.documents, TAKEN)
    threshold = best_threshold(truth(model, choose), before)
    made = figures(model, split, scores)
    made["micro_f1"] = micro_f1(truth(model, split), scores, threshold)
    return {
        "threshold": threshold,
        "metrics": made,
        "chosen_on": figures(model, choose, before),
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--split", default="test")
    parser.add_argument("--choose", default="dev")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    data = open_data(given.data, None, None)
    split, choose = data.split(given.split), data.split(given.choose)
    rows, models = [], [treetop.load(str(folder)) for folder in given.models]

    def add(row):
        rows.append({"data": given.data.name, **row, "split": given.split})
        given.out.write_text(json.dumps(rows, indent=2) + "\n")
        shown = "  ".join(f"{m} {100 * row['metrics'][m]:.2f}" for m in (*SHOWN, "micro_f1"))
        print(f"{row['variant']}: {shown}", flush=True)

    for folder, model in zip(given.models, models):
        facts = json.loads(folder.with_name(folder.name + ".json").read_text())
        add({**facts, **held_out(model, split, choose)})
    if len(models) > 1:
        together = {way: treetop.Ensemble(models, way) for way in COMBINE}
        found = {way: measure(made, choose)["P@5"] for way, made in together.items()}
        best = max(found, key=found.get)
        names = [folder.name for folder in given.models]
        common = {"variant": "ensemble", "members": names, "combine": best, "combine_P@5": found}
        add({**common, **versions(), **held_out(together[best], split, choose)})


if __name__ == "__main__":
    main()
