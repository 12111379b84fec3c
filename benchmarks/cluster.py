"""Two workers of one core each against one thread, stage by stage, without the time to start them.

    python benchmarks/cluster.py -o benchmarks/results/cluster.json

Stages: rankers and encoding as tasks on Ray; fine-tuning and encoding in two processes, as torchrun
starts them. Runs alternate between one and two; the figures are medians. Both sides do the same work
and give the same result, bit for bit in the rankers, within rounding in the encoder: this is checked.
"""

import argparse
import json
import os
import platform
import statistics
import sys
import time
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT), str(ROOT / "benchmarks")]
os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np  # noqa: E402
import scipy.sparse as sp  # noqa: E402
import torch  # noqa: E402
from commits import commit_of  # noqa: E402

import treetop  # noqa: E402
from treetop.features.encoders.opening import open_encoder  # noqa: E402
from treetop.features.encoders.subwords import Ragged  # noqa: E402
from treetop.features.hybrid import features  # noqa: E402
from treetop.kernels import common_kernels  # noqa: E402
from treetop.kernels.warming import warm_up  # noqa: E402
from treetop.labels.kmeans import KMeans  # noqa: E402
from treetop.labels.pifa import pifa  # noqa: E402
from treetop.labels.tree import balanced_tree  # noqa: E402
from treetop.ranking.training import train_rankers  # noqa: E402
from treetop.runtime import Runtime  # noqa: E402
from treetop.runtime.anywhere import active, using_cluster  # noqa: E402
from treetop.runtime.cluster import Cluster  # noqa: E402
from treetop.runtime.processes import start_team  # noqa: E402
from treetop.runtime.progress import TimedReporter  # noqa: E402
from treetop.runtime.team import Team  # noqa: E402
from treetop.settings.auto import for_size, with_costs  # noqa: E402
from treetop.settings.schema import LinearSettings  # noqa: E402
from treetop.training.finetune.embedding import FrozenEncoding, embed_on_cluster  # noqa: E402


def problem(documents: int, labels: int, words: int = 40, vocabulary: int = 20_000):
    """Documents whose words and labels follow Zipf's law, and a tree over the labels."""
    random = np.random.default_rng(0)

    def zipf(columns: int, each: int) -> sp.csr_matrix:
        chosen = (columns ** random.random((documents, each)) - 1).astype(np.int64)
        rows = np.repeat(np.arange(documents), each)
        ones = np.ones(rows.size, np.float32)
        matrix = sp.csr_matrix((ones, (rows, chosen.ravel())), shape=(documents, columns))
        matrix.data[:] = 1
        return matrix

    X = zipf(vocabulary, words)
    X.data[:] = 1 / np.sqrt(np.repeat(np.diff(X.indptr), np.diff(X.indptr)))
    Y = zipf(labels, 5)
    whole = features(X.astype(np.float32))
    Z = pifa(whole, Y, 2, largest=256)
    return whole, Y, balanced_tree(Z, [64, labels // 50], KMeans(10, 0, 2, 256))


def timed(work):
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result


def compared(name: str, one, two, runs: int, same) -> dict:
    """Run both sides in turn, after a run of each that does not count."""
    seconds: dict[str, list[float]] = {"one": [], "two": []}
    for run in range(runs + 1):
        (first, mine), (second, theirs) = one(), two()
        assert same(mine, theirs), name
        if run:
            seconds["one"].append(first)
            seconds["two"].append(second)
            print(f"{name}: {first:.2f} s, {second:.2f} s", file=sys.stderr, flush=True)
    medians = {side: statistics.median(times) for side, times in seconds.items()}
    return {**medians, "ratio": medians["one"] / medians["two"], "runs": seconds}


def rankers_on_ray(given) -> dict:
    X, Y, tree = problem(given.documents, given.labels)
    decided = for_size(with_costs(LinearSettings(), Y, None), Y.shape[1])
    settings = replace(decided, tolerance=0.01).ranker()

    def train():
        report = TimedReporter()
        (ranker,) = train_rankers(X, Y, tree, settings, seed=0, threads=1, report=report)
        report.close()
        return sum(report.seconds.values()), ranker

    def same(mine, theirs) -> bool:
        own, other = mine.arrays(), theirs.arrays()
        return own.keys() == other.keys() and all(np.array_equal(own[n], other[n]) for n in own)

    # The same connection is used by all runs, so that its processes stay.
    runtime = Runtime(cluster="local", threads=2)
    cluster = Cluster(runtime)

    def on_cluster():
        active.append(cluster)
        try:
            return train()
        finally:
            active.remove(cluster)

    try:
        return compared("rankers on Ray", train, on_cluster, given.runs, same)
    finally:
        cluster.close()


def tokens_of(documents: int, length: int, vocabulary: int) -> Ragged:
    ids = np.random.default_rng(0).integers(1000, vocabulary, documents * length, dtype=np.int32)
    return Ragged(ids, np.arange(documents + 1, dtype=np.int64) * length)


def close(mine: np.ndarray, theirs: np.ndarray) -> bool:
    return bool(np.allclose(mine, theirs, atol=1e-4))


def encoding(given, on_ray: bool) -> dict:
    runtime = Runtime(threads=1, device="cpu", precision="fp32")
    encoder = open_encoder(
        given.encoder, runtime, pooling="auto", max_length=128, dropout=0.1, to_learn=False
    )
    tokens = tokens_of(given.texts, 128, encoder.model.config.vocab_size)
    torch.set_num_threads(1)
    if on_ray:
        with using_cluster(Runtime(cluster="local", threads=2)) as cluster:
            return compared(
                "encoding on Ray",
                lambda: timed(lambda: encoder.embed(tokens)),
                lambda: timed(lambda: embed_on_cluster(encoder, tokens, cluster, None)),
                given.runs,
                close,
            )
    team = start_team(2, 600)
    work = FrozenEncoding(encoder, tokens, "cpu", 2, in_order=False)
    alone = FrozenEncoding(encoder, tokens, "cpu", 1, in_order=False)
    nothing = lambda: None  # noqa: E731
    result = compared(
        "encoding in processes",
        lambda: timed(lambda: alone.lead(Team(), nothing)),
        lambda: timed(lambda: work.lead(team, nothing)),
        given.runs,
        close,
    )
    team.close()
    return result


def fine_tuning(given) -> dict:
    """Seconds of the steps of a level, as the history has them."""
    random = np.random.default_rng(0)
    words = [f"word{n}" for n in range(2000)]
    chosen = [random.choice(2000, 90) for _ in range(4 * given.batch)]
    texts = [" ".join(words[n] for n in row) for row in chosen]
    labels = [[words[n] for n in row[:2] % 50] for row in chosen]
    changes = {"budget": f"{given.steps} steps", "first_tree": "flat", "batch": given.batch}
    changes |= {"max_length": 128, "precision": "fp32", "device": "cpu", "trees": 1, "dropout": 0.0}
    changes |= {"bootstrap_first": False}

    def train(processes: int):
        model = treetop.XRTransformer(encoder=given.encoder, **changes)
        runtime = Runtime(threads=processes, processes=processes)
        model.fit(texts, labels, runtime=runtime)
        return model.history_[-1]["seconds"], model.history_[-1]["loss"]

    def same(mine: float, theirs: float) -> bool:
        return abs(mine - theirs) < 0.02 * abs(mine)

    return compared("fine-tuning in processes", lambda: train(1), lambda: train(2), given.runs, same)


STAGES = {
    "rankers on Ray": rankers_on_ray,
    "encoding on Ray": lambda given: encoding(given, on_ray=True),
    "fine-tuning in processes": fine_tuning,
    "encoding in processes": lambda given: encoding(given, on_ray=False),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--labels", type=int, default=10_000)
    parser.add_argument("--texts", type=int, default=1024)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", action="append", choices=list(STAGES))
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args()
    warm_up(common_kernels())
    earlier = json.loads(given.output.read_text()) if given.output and given.output.exists() else {}
    stages = earlier.get("stages", {})
    for name, measure in STAGES.items():
        if given.only is None or name in given.only:
            stages[name] = measure(given)
            results = {
                "machine": f"{platform.machine()}, {os.cpu_count()} cores",
                "python": platform.python_version(),
                "versions": {"treetop": treetop.__version__, "torch": torch.__version__},
                "commit": commit_of(ROOT),
                "stages": stages,
            }
            if given.output:
                given.output.write_text(json.dumps(results, indent=2) + "\n")
    print(json.dumps({name: round(stage["ratio"], 2) for name, stage in stages.items()}, indent=2))


if __name__ == "__main__":
    main()
