"""Measures what the dial spends and gains: qualities of XRLinear; encoders, frozen or tuned in part.

    python benchmarks/dial.py qualities DATA_FOLDER
    python benchmarks/dial.py encoders DATA_FOLDER --encoder sentence-transformers/all-MiniLM-L6-v2

DATA_FOLDER contains data sets in the text-line format, one folder each. A fifth of the training
documents is held out, by hash; the split `test` is not read. Each system is trained in a process of
its own. Results are added to benchmarks/results/dial.json after each run, and runs that are there are
not repeated, so the script can be interrupted; `--again` repeats them.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from defaults import interval, ndcg_by_document
from linear import machine, versions

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "dial.json"
THREADS, HELD_OUT, K = 2, 0.2, 5
# Data sets, with the number of their training documents (None: all) and of the tokens per text.
QUALITY_SETS = {"cooking": None, "debian-depends": None, "debian-debtags-ja": None}
ENCODER_SETS = {"cooking": (5000, 32), "debian-debtags": (1500, 128)}
QUALITIES: dict[str, dict[str, object]] = {
    "balanced": {},
    "quick": {"quality": "quick"},
    "best": {"quality": "best"},
}
LIGHT = {"competition": False, "calibration": False}
ENCODERS: dict[str, dict[str, object]] = {
    "words": LIGHT,
    "frozen": {**LIGHT, "fine_tune": False},
    "tuned_layers=1": {**LIGHT, "tuned_layers": 1},
    "tuned_layers=2": {**LIGHT, "tuned_layers": 2},
    "all layers": {**LIGHT},
    "frozen, fp32": {**LIGHT, "fine_tune": False, "precision": "fp32"},
    "tuned_layers=2, fp32": {**LIGHT, "tuned_layers": 2, "precision": "fp32"},
}


def split_of(source: Path, documents: int | None) -> tuple[list[str], list[str], list, list]:
    """Texts to train on and held-out ones, then their labels."""
    from treetop.data import open_data
    from treetop.model.seen import hashes_of
    from treetop.training.folds import held_out

    train = open_data(source).split("train")
    texts, labels = list(train.texts)[:documents], list(train.labels)[:documents]
    held = set(held_out(hashes_of(texts), share=HELD_OUT, most=len(texts)).tolist())
    own = [row for row in range(len(texts)) if row not in held]
    return (
        [texts[row] for row in own],
        [texts[row] for row in sorted(held)],
        [labels[row] for row in own],
        [labels[row] for row in sorted(held)],
    )


def work(task: dict) -> dict[str, object]:
    """Train one system in this process; writes nDCG@5 by document to a file."""
    import treetop
    from treetop.evaluation.context import ranking_context
    from treetop.labels.vocabulary import vocabulary_of
    from treetop.metrics import frequencies

    texts, held_texts, labels, held_labels = split_of(Path(task["source"]), task["documents"])
    vocabulary = vocabulary_of(labels)
    Y, held = vocabulary.encode(labels), vocabulary.extended(held_labels).encode(held_labels)
    settings = dict(task["settings"])
    kind = treetop.XRTransformer if "encoder" in settings else treetop.XRLinear
    quality = settings.pop("quality", None)
    model = kind(**settings) if quality is None else kind.of_quality(quality, **settings)
    model.set_params(threads=THREADS)
    # Compile kernels, and import torch, beforehand.
    warm = {name: value for name, value in settings.items() if name != "tuned_layers"}
    warm = warm | ({"fine_tune": False} if "encoder" in settings else {})
    kind(**{**warm, "threads": THREADS}).fit(texts[:600], Y[:600])
    began, began_cpu = time.perf_counter(), time.process_time()
    model.fit(texts, Y)
    seconds, cpu = time.perf_counter() - began, time.process_time() - began_cpu
    context = ranking_context(
        held,
        model.predict_scores(held_texts, K),
        K,
        classes=range(Y.shape[1]),  # held-out labels that do not occur in training follow
        columns=range(held.shape[1]),
        train_counts=frequencies(Y),
        train_documents=Y.shape[0],
    )
    by_document = ndcg_by_document(context)
    np.save(task["output"], by_document)
    return {
        "documents": Y.shape[0],
        "held_out": len(held_texts),
        "labels": Y.shape[1],
        "nDCG@5": 100 * float(by_document.mean()),
        "cpu_seconds": cpu,
        "seconds": seconds,
        "ngrams": model.settings_.ngrams,
    }


def commit() -> str:
    """The commit that is measured."""
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=HERE, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def run(task: dict) -> dict[str, object]:
    """Call `work` in another process."""
    command = [sys.executable, __file__, "--work", json.dumps(task)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def tasks_of(chosen: argparse.Namespace) -> list[tuple[str, str, dict]]:
    """Data set, system, and what its process does; the first system of a set is compared with."""
    tasks = []
    if chosen.part == "qualities":
        for name, documents in QUALITY_SETS.items():
            tasks += [
                (name, system, {"documents": documents, "settings": settings})
                for system, settings in QUALITIES.items()
            ]
        return tasks
    for name, (documents, tokens) in ENCODER_SETS.items():
        for system, settings in ENCODERS.items():
            own = dict(settings)
            if system != "words":
                own |= {"encoder": str(chosen.encoder), "max_length": tokens, "device": "cpu"}
            tasks.append((name, system, {"documents": documents, "settings": own}))
    return tasks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("part", nargs="?", choices=("qualities", "encoders"))
    parser.add_argument("data", nargs="?", type=Path)
    parser.add_argument("--encoder", default="sentence-transformers/all-MiniLM-L6-v2")
    parser.add_argument("--sets", nargs="+")
    parser.add_argument("--systems", nargs="+")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--scratch", type=Path, default=Path(tempfile.gettempdir()) / "treetop-dial")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--work", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.work:
        print(json.dumps(work(json.loads(chosen.work))))
        return
    chosen.scratch.mkdir(parents=True, exist_ok=True)
    results = json.loads(chosen.results.read_text()) if chosen.results.exists() else {}
    pythons = {name: sys.executable for name in ("treetop", "torch", "transformers")}
    results.update(machine=machine(), versions=versions(pythons))
    results.update(threads=THREADS, seed=0)
    part = results.setdefault(chosen.part, {})
    for name, system, task in tasks_of(chosen):
        if (chosen.sets and name not in chosen.sets) or (
            chosen.systems and system not in chosen.systems
        ):
            continue
        systems = part.setdefault(name, {})
        if system in systems and not chosen.again:
            continue
        output = chosen.scratch / f"{chosen.part}-{name}-{system.replace(', ', '-')}.npy"
        found = run({**task, "source": str(chosen.data / name), "output": str(output)})
        base = (
            chosen.scratch
            / f"{chosen.part}-{name}-{'balanced' if chosen.part == 'qualities' else 'words'}.npy"
        )
        low, high = interval(100 * (np.load(output) - np.load(base)))
        systems[system] = {**found, "against_first": [low, high], "commit": commit()}
        print(name, system, json.dumps(systems[system]), flush=True)
        chosen.results.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
