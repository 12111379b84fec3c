"""Measures how fast a large model opens, with every number in it checked.

    python benchmarks/load_speed.py [--gb 5] [--threads 1,2] [--folder PLACE] [--out FILE]

The model is made up: its weights are laid out as those of a trained one, and fill this many gigabytes.
PLACE needs twice as much room for a while. The first load may read from the disk; the figures are of
those that follow, when the files are in memory.
"""

import argparse
import json
import os
import platform
import subprocess
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

import treetop
from treetop.features.feature_map import FeatureMap
from treetop.kernels.products import WIDTH
from treetop.labels.tree import Tree
from treetop.model.folder import write_model
from treetop.ranking.ranker import Ranker
from treetop.ranking.weights import Weights

FEATURES, CLUSTERS, CHILDREN = 100_000, 1000, 100
WEIGHTS_PER_ROW = 8
REPEATS = 5


def weights_of(work, size):
    """Return weights of `size` bytes, which stay on disk."""
    per_feature = max(1, round(size / FEATURES / (8 + 8 * (1 + WEIGHTS_PER_ROW))))
    stride = CLUSTERS // per_feature
    if not stride:
        raise SystemExit("too many gigabytes: raise FEATURES")
    count, length = FEATURES * per_feature, 1 + WEIGHTS_PER_ROW
    rows = np.memmap(work / "rows", np.int32, "w+", shape=(count, 2))
    pairs = np.memmap(work / "pairs", np.int32, "w+", shape=(count * length, 2))
    rng = np.random.default_rng(0)
    block = np.zeros((per_feature, length, 2), np.int32)
    block[:, 0, 0] = WEIGHTS_PER_ROW
    block[:, 1:, 0] = np.arange(0, CHILDREN, CHILDREN // WEIGHTS_PER_ROW)[:WEIGHTS_PER_ROW]
    for feature in range(FEATURES):
        own = slice(feature * per_feature, (feature + 1) * per_feature)
        rows[own, 0] = 1 + feature % stride + stride * np.arange(per_feature)
        rows[own, 1] = length * np.arange(own.start, own.stop)
        block[:, 1:, 1] = rng.standard_normal(WEIGHTS_PER_ROW, np.float32).view(np.int32)
        pairs[length * own.start : length * own.stop] = block.reshape(-1, 2)
    labels = CLUSTERS * CHILDREN
    return Weights(
        row_ptr=per_feature * np.arange(FEATURES + 1),
        rows=rows,
        pairs=pairs,
        full=np.zeros((0, WIDTH), np.float32),
        dense=np.zeros(0, np.float32),
        biases=np.zeros(CLUSTERS + labels, np.float32),
        child_ptr=np.append(0, CLUSTERS + CHILDREN * np.arange(CLUSTERS + 1)),
        level_ptr=np.array([0, 1, 1 + CLUSTERS]),
    )


def write_large(folder, work, size):
    """Write a model whose weights have `size` bytes."""
    X, Y = np.eye(8, dtype=np.float32), [[str(n)] for n in range(8)]
    model = treetop.XRLinear(tree="4-L").fit(X, Y).model_
    labels = CLUSTERS * CHILDREN
    tree = Tree((np.array([0, CLUSTERS]), CHILDREN * np.arange(CLUSTERS + 1)), np.arange(labels))
    ranker = Ranker(tree, weights_of(work, size), model.settings.ranker())
    large = replace(
        model,
        classes=np.array([f"label {number}" for number in range(labels)], object),
        feature_map=FeatureMap((FEATURES, 0)),
        rankers=(ranker,),
        label_counts=np.ones(labels, np.int64),
        train_documents=labels,
        seen=None,
    )
    write_model(large, folder)


def seconds_to_load(folder, threads):
    """Return the seconds of loads, and those of all processors together, after a first one."""
    runtime, taken = treetop.Runtime(threads=threads), []
    for _ in range(1 + REPEATS):
        started, worked = time.perf_counter(), time.process_time()
        treetop.load(folder, runtime=runtime)
        taken.append((time.perf_counter() - started, time.process_time() - worked))
    return np.array(taken[1:]).T.tolist()


def commit():
    return subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gb", type=float, default=1.0)
    parser.add_argument("--threads", default=f"1,{os.cpu_count()}")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    facts = {
        "repeats": REPEATS,
        "cores": os.cpu_count(),
        "commit": commit(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "loads": {},
    }
    with tempfile.TemporaryDirectory(dir=given.folder) as spare:
        folder = Path(spare) / "model"
        with tempfile.TemporaryDirectory(dir=spare) as work:
            write_large(folder, Path(work), given.gb * 1e9)
        size = sum(path.stat().st_size for path in folder.iterdir())
        facts["gigabytes"] = size / 1e9
        for threads in map(int, given.threads.split(",")):
            taken, worked = seconds_to_load(folder, threads)
            middle = float(np.median(taken))
            row = {"median": middle, "least": min(taken), "most": max(taken)}
            row["processor_seconds"] = float(np.median(worked))
            facts["loads"][f"{threads} threads"] = {**row, "gigabytes_per_second": size / 1e9 / middle}
            print(
                f"{size / 1e9:.2f} GB, {threads} threads:",
                facts["loads"][f"{threads} threads"],
                flush=True,
            )
    if given.out:
        given.out.write_text(json.dumps(facts, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
