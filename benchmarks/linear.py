"""Compares treetop with libpecos, omikuji, napkinXC and scikit-learn on the same data and threads.

Each library is installed in a separate environment; specify the interpreters by name:

    python benchmarks/linear.py DATA_FOLDER --work bench-data --stage speed \
        --python treetop=.venv/bin/python --python libpecos=peers/bin/python

DATA_FOLDER contains data sets in the text-line format, one folder each. Runs alternate between the
libraries. Results are added to benchmarks/results/linear.json.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from treetop import metrics
from treetop.data import open_data
from treetop.features.words.tfidf import fit_tfidf
from treetop.labels.vocabulary import vocabulary_of
from treetop.settings.parts import Analyser

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "linear.json"
# The tree shapes that libpecos builds with branching 16 and leaves of 100, so that both are the same.
TREES = {"eurlex57k": "4-64-L", "debian-depends": "2-32-512-L"}
MIN_DF = {"eurlex57k": 5}
SMALL = ("cooking", "cve-libraries", "debian-debtags")
MEASURES = ("P@1", "P@3", "P@5", "RP@5", "nDCG@5", "PSP@5")
LIMIT_SECONDS = 1800


def prepare(source: Path, work: Path) -> None:
    """Write texts, labels and TF-IDF features (words; words and pairs) in all required formats."""
    if (work / "ready").exists():
        return
    work.mkdir(parents=True, exist_ok=True)
    data = open_data(source)
    train, test = data.split("train"), data.split("test")
    vocabulary = vocabulary_of(train.labels)
    least = MIN_DF.get(source.name, 1)
    sp.save_npz(work / "Y.trn.npz", vocabulary.encode(train.labels))
    sp.save_npz(work / "Y.tst.npz", vocabulary.extended(test.labels).encode(test.labels))
    for name, ngrams in (("X", (1, 2)), ("U", (1, 1))):
        analyser = Analyser(ngrams=ngrams, min_df=least, max_features=500_000)
        tfidf, X = fit_tfidf([analyser], train.texts)
        sp.save_npz(work / f"{name}.trn.npz", X)
        sp.save_npz(work / f"{name}.tst.npz", tfidf.transform(test.texts))
        write_xmlrepo(work / f"{name}.trn.txt", X, vocabulary.encode(train.labels))
    for name, split in (("train", train), ("test", test)):
        (work / f"{name}.txt").write_text("".join(f"{t}\n" for t in split.texts), "utf-8")
    (work / "ready").touch()


def write_xmlrepo(path: Path, X: sp.csr_matrix, Y: sp.csr_matrix) -> None:
    with path.open("w") as file:
        file.write(f"{X.shape[0]} {X.shape[1]} {Y.shape[1]}\n")
        for row in range(X.shape[0]):
            a, b = X.indptr[row], X.indptr[row + 1]
            labels = ",".join(map(str, Y.indices[Y.indptr[row] : Y.indptr[row + 1]]))
            pairs = zip(X.indices[a:b].tolist(), X.data[a:b].tolist(), strict=True)
            file.write(labels + "".join(f" {f}:{v:.6g}" for f, v in pairs) + "\n")


def run_worker(
    python: str,
    worker: str,
    stage: str,
    work: Path,
    options: dict,
    limit: int = LIMIT_SECONDS,
    log: Path | None = None,
) -> dict:
    """Run a stage in the environment of a library; `log` gets its standard error while it runs."""
    script = HERE / "workers" / f"{worker}_worker.py"
    threads = {name: "2" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
    started = time.perf_counter()
    with open(log, "a+") if log is not None else tempfile.TemporaryFile("w+") as errors:
        try:
            done = subprocess.run(
                [python, str(script), stage, str(work), json.dumps(options)],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**os.environ, **threads},
                timeout=limit,
            )
        except subprocess.TimeoutExpired:
            return {"failed": f"not finished after {limit} s"}
        errors.seek(0)
        said = errors.read().strip().splitlines()
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    if not lines:
        return {"failed": (said or [f"exit code {done.returncode}"])[-1][:200]}
    result = json.loads(lines[-1].removeprefix("RESULT "))
    return {**result, "wall": time.perf_counter() - started}


def evaluated(work: Path, name: str) -> metrics.Evaluation:
    """Compute all metrics of the predictions of this name on the test set."""
    Y, train = (sp.csr_matrix(sp.load_npz(work / f"Y.{split}.npz")) for split in ("tst", "trn"))
    predicted = sp.csr_matrix(sp.load_npz(work / f"predictions.{name}.npz"))
    return metrics.evaluate(
        Y,
        predicted,
        (1, 3, 5),
        classes=range(predicted.shape[1]),  # labels that occur only in the test set follow in Y
        columns=range(Y.shape[1]),
        train_counts=metrics.frequencies(train),
        train_documents=train.shape[0],
    )


def measure(work: Path, worker: str) -> dict:
    """Compute the metrics of a worker's predictions on the test set."""
    result = evaluated(work, worker)
    return {name: round(100 * result[name], 2) for name in MEASURES}


def speed(name: str, work: Path, pythons: dict, repeats: int, steps: list[str]) -> dict:
    """Time the steps of treetop and libpecos in alternating runs.

    `predict` uses the models that `linear` saved.
    """
    runs: dict = {}
    for stage in steps:
        options = {"min_df": MIN_DF.get(name, 1), "tree": TREES[name]}
        for _ in range(repeats):
            for worker in ("treetop", "libpecos"):
                result = run_worker(pythons[worker], worker, stage, work, options)
                print(name, stage, worker, json.dumps(result), flush=True)
                runs.setdefault(stage, {}).setdefault(worker, []).append(result)
                if stage == "linear" and "failed" not in result:
                    result["quality"] = measure(work, worker)
    return runs


def quality(name: str, work: Path, pythons: dict, workers: list[str]) -> dict:
    """Train each library with its own defaults; measure time, memory and quality on the test set."""
    runs: dict = {}
    for worker in workers:
        if worker == "sklearn" and name not in SMALL:
            continue
        variants: dict = {worker: {}}
        if worker == "treetop" and name not in SMALL:
            variants["treetop, one tree"] = {"trees": 1}
        if worker == "omikuji":
            variants = {"omikuji (words)": {"features": "U"}, "omikuji (words, pairs)": {}}
        if worker == "libpecos":
            variants = {"libpecos": {"min_df": MIN_DF.get(name, 1)}}
        for title, options in variants.items():
            result = run_worker(pythons[worker], worker, "default", work, options)
            if "failed" not in result:
                result["quality"] = measure(work, worker)
            print(name, "default", title, json.dumps(result), flush=True)
            runs[title] = result
    return runs


def cold_start(name: str, work: Path, python: str) -> dict:
    """Time `treetop predict` for one text in a new process, with kernels already compiled."""
    command = [python, "-m", "treetop", "predict", str(work / "treetop.model"), "-", "-k", "5"]
    text = (work / "test.txt").read_text("utf-8").split("\n")[0] + "\n"
    if not (work / "treetop.model").exists():
        train = [python, "-c", TRAIN_AND_SAVE.format(work=str(work))]
        subprocess.run(train, check=True)
    taken = []
    for _ in range(7):
        started = time.perf_counter()
        subprocess.run(command, input=text, text=True, check=True, capture_output=True)
        taken.append(time.perf_counter() - started)
    return {"seconds": taken[1:], "median": float(np.median(taken[1:]))}


TRAIN_AND_SAVE = """
import scipy.sparse as sp, treetop
texts = open("{work}/train.txt", encoding="utf-8").read().split("\\n")[:-1]
treetop.XRLinear().fit(texts, sp.load_npz("{work}/Y.trn.npz")).save("{work}/treetop.model")
"""


def machine() -> dict:
    with open("/proc/cpuinfo") as file:
        model = next((line.split(":")[1].strip() for line in file if "model name" in line), "")
    return {"cpu": model, "cores": len(os.sched_getaffinity(0)), "system": platform.system()}


def versions(pythons: dict) -> dict:
    """Return the versions of all libraries, each from its own environment."""
    names = {"sklearn": "scikit-learn", "treetop": "treetop-xmc"}
    numbers = {name: version(name) for name in ("numpy", "scipy", "numba")}
    for worker, python in pythons.items():
        code = f"from importlib.metadata import version as v; print(v({names.get(worker, worker)!r}))"
        done = subprocess.run([python, "-c", code], capture_output=True, text=True)
        numbers[worker] = done.stdout.strip()
    return {**numbers, "python": platform.python_version()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--work", type=Path, default=Path("bench-data"))
    parser.add_argument("--stage", choices=("speed", "quality", "cold"), required=True)
    parser.add_argument("--sets", nargs="+", default=["eurlex57k", "debian-depends", *SMALL])
    parser.add_argument("--workers", nargs="+", default=["treetop", "libpecos", "omikuji"])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--steps", nargs="+", default=["tfidf", "linear", "predict"])
    parser.add_argument("--python", action="append", default=[], metavar="PEER=INTERPRETER")
    chosen = parser.parse_args()
    pythons = {"treetop": sys.executable, "sklearn": sys.executable}
    pythons.update(dict(item.split("=", 1) for item in chosen.python))
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    known = {**results.get("versions", {}), **versions(pythons)}
    results.update(machine=machine(), versions=known, threads=2, seed=0)
    for name in chosen.sets:
        work = chosen.work / name
        prepare(chosen.data / name, work)
        if chosen.stage == "speed":
            before = results.get("speed", {}).get(name, {})
            found = {**before, **speed(name, work, pythons, chosen.repeats, chosen.steps)}
        elif chosen.stage == "cold":
            found = cold_start(name, work, pythons["treetop"])
        else:
            before = results.get("quality", {}).get(name, {})
            found = {**before, **quality(name, work, pythons, chosen.workers)}
        results.setdefault(chosen.stage, {})[name] = found
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
