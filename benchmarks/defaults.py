"""Measures treetop's defaults on several data sets against fixed feature settings and omikuji.

    python benchmarks/defaults.py DATA_FOLDER --work bench-data --python omikuji=peers/bin/python

DATA_FOLDER contains data sets in the text-line format, one folder each. Every system is trained on
`train` and evaluated once on `test`, in a process of its own. Results are added to
benchmarks/results/defaults.json after each run, and runs whose results are there are not repeated, so
the script can be interrupted; `--again` repeats those of the named systems. `--decide` only notes which
features the default of this commit decides on.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from linear import machine, prepare, run_worker, versions

from treetop.data import open_data
from treetop.evaluation.context import Context, ranking_context
from treetop.evaluation.evaluating import evaluation_of
from treetop.evaluation.metrics import computed_metrics, discounts
from treetop.metrics import frequencies
from treetop.runtime import Runtime
from treetop.settings.schema import LinearSettings
from treetop.training import read_labels
from treetop.training.competition import decided
from treetop.training.sampling import SampledFrom

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "defaults.json"
SETS = (
    "debian-debtags-pl",
    "debian-debtags-ru",
    "debian-debtags-ja",
    "debian-debtags-de",
    "cve-libraries",
    "cooking",
    "debian-debtags",
    "debian-depends",
    "eurlex57k",
)
# Feature settings that a user might choose for all data, each of them alone.
FIXED = (
    "word:1",
    "word:1-2",
    "word:1-3",
    "char:3-5",
    "char:4",
    "char:1-3",
    "word:1+char:4",
    "word:1-2+char:3-5",
)
COMPETITION, RULES = "competition", "rules"
SYSTEMS: dict[str, dict[str, object]] = {
    COMPETITION: {"calibration": False},
    RULES: {"competition": False, "calibration": False},
    **{ngrams: {"ngrams": ngrams, "competition": False, "calibration": False} for ngrams in FIXED},
    "omikuji (words)": {"features": "U"},
    "omikuji (words, pairs)": {"features": "X"},
}
MEASURES = ("P@1", "P@3", "P@5", "nDCG@5", "PSP@5", "macro_f1@5")
RESAMPLES = 2000


def context_of(work: Path, worker: str) -> Context:
    """Compare the predictions that a worker has left with the labels of the test documents."""
    Y, train = (sp.csr_matrix(sp.load_npz(work / f"Y.{split}.npz")) for split in ("tst", "trn"))
    predicted = sp.csr_matrix(sp.load_npz(work / f"predictions.{worker}.npz"))
    return ranking_context(
        Y,
        predicted,
        5,
        classes=range(predicted.shape[1]),  # labels that occur only in the test set follow in Y
        columns=range(Y.shape[1]),
        train_counts=frequencies(train),
        train_documents=train.shape[0],
    )


def ndcg_by_document(context: Context) -> np.ndarray:
    """nDCG@5 of each document that has labels: float64."""
    has = context.positives > 0
    gained = (context.hits[has] * discounts(context.k)).sum(axis=1)
    possible = np.cumsum(discounts(context.k))[np.minimum(context.k, context.positives[has]) - 1]
    return np.asarray(gained / possible)


def measured(work: Path, system: str, options: dict[str, object], python: str) -> dict[str, object]:
    """Train a system on `train`, evaluate it on `test`, and keep nDCG@5 by document in `work`."""
    worker = "omikuji" if system.startswith("omikuji") else "treetop"
    result = run_worker(python, worker, "default", work, options)
    if "failed" in result:
        return result
    context = context_of(work, worker)
    np.save(work / f"ndcg.{file_name(system)}.npy", ndcg_by_document(context))
    values = evaluation_of(context, (1, 3, 5), None, computed_metrics(()))
    return {**result, "quality": {name: round(100 * values[name], 3) for name in MEASURES}}


def file_name(system: str) -> str:
    """The name of a system as part of a file name."""
    return "".join(letter if letter.isalnum() else "-" for letter in system)


def interval(differences: np.ndarray, seed: int = 0) -> tuple[float, float]:
    """The central 95 % of the mean of `differences` over documents drawn with replacement."""
    rng = np.random.default_rng(seed)
    means = [
        differences[rng.integers(0, len(differences), len(differences))].mean()
        for _ in range(RESAMPLES)
    ]
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def against_others(work: Path, systems: dict[str, dict]) -> dict[str, dict[str, float]]:
    """Difference in nDCG@5 of the competition to every other system, in points, with its interval."""
    if "quality" not in systems.get(COMPETITION, {}):
        return {}
    own = np.load(work / f"ndcg.{file_name(COMPETITION)}.npy")
    compared = {}
    for system, result in systems.items():
        path = work / f"ndcg.{file_name(system)}.npy"
        if system == COMPETITION or "quality" not in result or not path.exists():
            continue
        differences = 100 * (own - np.load(path))
        low, high = interval(differences)
        compared[system] = {"difference": float(differences.mean()), "low": low, "high": high}
    return compared


def decisions(data: Path, sets: list[str]) -> dict[str, str]:
    """The n-grams that the default of this commit decides on, by data set."""
    chosen = {}
    for name in sets:
        train = open_data(data / name).split("train")
        Y, _ = read_labels(train.labels, None)
        documents = SampledFrom(train.texts, Y, None)
        chosen[name] = decided(LinearSettings(), documents, Runtime(threads=2))[0].ngrams
    return chosen


def commit() -> str:
    """The commit that is measured."""
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=HERE, capture_output=True, text=True
    )
    return done.stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--work", type=Path, default=Path("bench-data"))
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--systems", nargs="+", default=list(SYSTEMS), choices=list(SYSTEMS))
    parser.add_argument("--again", action="store_true")
    parser.add_argument(
        "--decide", action="store_true", help="only decide on features, without training"
    )
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--python", action="append", default=[], metavar="PEER=INTERPRETER")
    chosen = parser.parse_args()
    pythons = {"treetop": sys.executable, **dict(item.split("=", 1) for item in chosen.python)}
    results = json.loads(chosen.results.read_text()) if chosen.results.exists() else {}
    if chosen.decide:
        results["decided"] = {"commit": commit(), "ngrams": decisions(chosen.data, chosen.sets)}
        chosen.results.write_text(json.dumps(results, indent=1) + "\n")
        return
    results.update(machine=machine(), versions=versions(pythons), threads=2, seed=0)
    for name in chosen.sets:
        work = chosen.work / name
        prepare(chosen.data / name, work)
        systems = results.setdefault("systems", {}).setdefault(name, {})
        for system in chosen.systems:
            if "quality" in systems.get(system, {}) and not chosen.again:
                continue
            python = pythons["omikuji" if system.startswith("omikuji") else "treetop"]
            found = {**measured(work, system, SYSTEMS[system], python), "commit": commit()}
            print(name, system, json.dumps(found), flush=True)
            systems[system] = found
            chosen.results.write_text(json.dumps(results, indent=1) + "\n")
        results.setdefault("against", {})[name] = against_others(work, systems)
        chosen.results.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
