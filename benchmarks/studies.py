"""Repeats the paper's studies on one data set: its Tables 4, 5 and 6 and Figure 3.

    python benchmarks/studies.py DATA --encoder FOLDER [--vectors FILE] --run FOLDER --out studies.json

All variants are trained for the same total number of steps and evaluated on the split dev: nothing is
chosen on the test set. Stages that variants share run once (`--run`), so that times are those of the
other stages. `--only NAME` runs one study or variant; `--set` changes a setting of all variants.
"""

import argparse
import json
import time
from pathlib import Path

from transformer import measure, splits, versions

import treetop
from treetop.data import open_data
from treetop.kernels import common_kernels
from treetop.kernels.warming import warm_up
from treetop.runtime.progress import TimedReporter
from treetop.settings.notation import parse_assignment

STEPS = (300, 400, 600)
KEPT = ("P@1", "P@3", "P@5", "R@1", "R@3", "R@5", "RP@5", "nDCG@5", "PSP@5")
CLUSTER_SIZES = (4, 16, 64, 256)
# The paper's method, without most of what the defaults add to it.
WORDS = {"ngrams": "word:1-2", "cost_sensitive": False, "lambda_": 0.35, "alpha": 1.0}
PAPER = {
    **WORDS,
    "tune_shortlist": "beam",
    "tune_cost_sensitive": True,
    "tune_lambda": 0.5,
    "tune_alpha": 1.0,
    "head_share": 0.0,
    "dense_weight": 0.5,
}
SUITED = {"cost_sensitive": True, "lambda_": None, "alpha": 0.3}


def variants(labels, encoder, vectors):
    """Return a tuple (study, name, kind of model, settings) for each variant."""
    whole, steps = f"{sum(STEPS)} steps", "/".join(map(str, STEPS)) + " steps"
    base = {**PAPER, "encoder": encoder, "first_tree": "16-256-L", "budget": steps}
    plain = {**PAPER, "encoder": encoder}
    made = [
        ("single", "XR-Linear", "xr-linear", WORDS),
        (
            "single",
            "a single level of clusters, as in X-Transformer",
            "xr-transformer",
            {**base, "first_tree": "256", "budget": whole},
        ),
        (
            "single",
            "all labels at once, without clusters",
            "xr-transformer",
            {**base, "first_tree": "flat", "budget": whole},
        ),
        (
            "single",
            "XR-Transformer without bootstrapping",
            "xr-transformer",
            {**base, "bootstrap": False},
        ),
        ("single", "XR-Transformer", "xr-transformer", base),
        ("resolution", "all levels: Φ_cat", "xr-transformer", base),
        ("resolution", "all levels: Φ_dnn", "xr-transformer", {**base, "words": False}),
        ("embedding", "TF-IDF", "xr-linear", WORDS),
        ("embedding", "Pre-Trained + TF-IDF", "xr-transformer", {**plain, "fine_tune": False}),
        ("embedding", "XR-Transformer", "xr-transformer", base),
        ("cost", "XR-Linear", "xr-linear", WORDS),
        ("cost", "XR-Linear, cost-sensitive", "xr-linear", {**WORDS, "cost_sensitive": True}),
        (
            "cost",
            "XR-Linear, cost-sensitive, λ = 0.35 / mean labels per document, α = 0.3",
            "xr-linear",
            {**WORDS, **SUITED},
        ),
        ("cost", "XR-Transformer", "xr-transformer", {**base, "tune_cost_sensitive": False}),
        ("cost", "XR-Transformer, cost-sensitive fine-tuning", "xr-transformer", base),
        (
            "cost",
            "XR-Transformer, cost-sensitive throughout",
            "xr-transformer",
            {**base, "cost_sensitive": True},
        ),
    ]
    if vectors:
        settings = {**PAPER, "encoder": vectors, "fine_tune": False}
        made.insert(8, ("embedding", "word2vec + TF-IDF", "xr-transformer", settings))
    for size in CLUSTER_SIZES:
        tree = str(max(2, labels // size))
        settings = {**base, "first_tree": tree, "budget": whole}
        made.append(("resolution", f"{size}: Φ_cat", "xr-transformer", settings))
        made.append(("resolution", f"{size}: Φ_dnn", "xr-transformer", {**settings, "words": False}))
    return made


def run(kind, settings, whole, split, folder):
    report = TimedReporter()
    started = time.perf_counter()
    if kind == "xr-linear":
        model = treetop.XRLinear(**settings).fit(whole.texts, whole.labels, report=report)
    else:
        model = treetop.XRTransformer(**settings)
        model.fit(whole.texts, whole.labels, report=report, run=folder, resume=True)
    seconds = time.perf_counter() - started
    result = measure(model, split)
    return {
        "seconds": seconds,
        "stages": {name: round(value, 2) for name, value in report.seconds.items()},
        "metrics": {name: result[name] for name in KEPT},
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--vectors", help="a file of word vectors")
    parser.add_argument("--split", default="dev")
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--only", action="append")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--hold-out", type=float, default=0.0)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    warm_up(common_kernels())
    data = open_data(given.data, None, None)
    whole, split = splits(data, given)
    labels = len({name for line in whole.labels for name in line})
    changes = dict(map(parse_assignment, given.set))
    made = json.loads(given.out.read_text()) if given.out.is_file() else {}
    made |= {"data": given.data.name, "split": given.split, **versions()}
    done = {}
    for study, name, kind, settings in variants(labels, given.encoder, given.vectors):
        if given.only and study not in given.only and name not in given.only:
            continue
        if kind == "xr-transformer":
            settings = {**settings, **changes}
        key = json.dumps([kind, settings], sort_keys=True)
        if key not in done:
            done[key] = run(kind, settings, whole, split, given.run)
        made.setdefault("studies", {}).setdefault(study, {})[name] = {"settings": settings, **done[key]}
        figures = "  ".join(f"{m} {100 * done[key]['metrics'][m]:.2f}" for m in ("P@1", "P@3", "P@5"))
        print(f"{study}: {name}: {figures}  {done[key]['seconds']:.1f} s", flush=True)
        given.out.write_text(json.dumps(made, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
