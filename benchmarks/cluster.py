"""Two workers of one core each against one thread, stage by stage, without the time to start them.

    python benchmarks/cluster.py -o benchmarks/results/cluster.json

Stages: rankers and encoding as tasks on Ray; fine-tuning and encoding in two processes, as torchrun
starts them. Runs alternate between one and two; the figures are medians. Both sides do the same work
and give the same result, bit for bit in the rankers, within rounding in the encoder: this is checked.
The second side has two cores: where the driver works while the workers wait, it uses both. What other
programs used of the machine during a run is noted beside it; a stage of which each run was disturbed
has no figure.

"two programs" is what the machine itself allows: one process encodes, then two at once, independent of
each other, as much each. More than this ratio is not to be had.
"""

import argparse
import json
import multiprocessing
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
from machine_use import Use  # noqa: E402

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

DISTURBED = 0.15  # CPU seconds of other programs per second, above which a run does not count


def problem(documents: int, labels: int, words: int = 80, vocabulary: int = 20_000):
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
    """Run both sides in turn. Pairs during which other programs used the machine do not count."""
    rows = []
    for _ in range(runs):
        with Use() as first:
            seconds, mine = one()
        with Use() as second:
            seconds_of_two, theirs = two()
        assert same(mine, theirs), name
        row = {"one": seconds, "two": seconds_of_two}
        row |= {"one: CPU": first.own, "two: CPU": second.own}
        row |= {"one: others": first.others_share, "two: others": second.others_share}
        rows.append({name: round(value, 3) for name, value in row.items()})
        print(name, rows[-1], file=sys.stderr, flush=True)
    valid = [row for row in rows if max(row["one: others"], row["two: others"]) <= DISTURBED]
    if not valid:
        return {"runs": rows}
    medians = {side: statistics.median(row[side] for row in valid) for side in ("one", "two")}
    return {**medians, "ratio": medians["one"] / medians["two"], "runs": rows}


def rankers_on_ray(given) -> dict:
    X, Y, tree = problem(given.documents, given.labels)
    small = problem(4000, 5000)
    decided = for_size(with_costs(LinearSettings(), Y, None), Y.shape[1])
    settings = replace(decided, tolerance=0.01).ranker()

    def train(threads: int, X=X, Y=Y, tree=tree):
        report = TimedReporter()
        (ranker,) = train_rankers(X, Y, tree, settings, seed=0, threads=threads, report=report)
        report.close()
        return sum(report.seconds.values()), ranker

    def same(mine, theirs) -> bool:
        own, other = mine.arrays(), theirs.arrays()
        return own.keys() == other.keys() and all(np.array_equal(own[n], other[n]) for n in own)

    # The same connection is used by all runs, so that its processes stay.
    runtime = Runtime(cluster="local", threads=2)
    cluster = Cluster(runtime)

    def on_cluster(*problem):
        active.append(cluster)
        try:
            return train(2, *problem)
        finally:
            active.remove(cluster)

    try:
        on_cluster(*small)  # starts the processes
        return compared("rankers on Ray", lambda: train(1), on_cluster, given.runs, same)
    finally:
        cluster.close()


def tokens_of(documents: int, length: int, vocabulary: int) -> Ragged:
    ids = np.random.default_rng(0).integers(1000, vocabulary, documents * length, dtype=np.int32)
    return Ragged(ids, np.arange(documents + 1, dtype=np.int64) * length)


def close(mine: np.ndarray, theirs: np.ndarray) -> bool:
    return bool(np.allclose(mine, theirs, atol=1e-4))


def random_encoder(given):
    """The encoder, and tokens of texts of one length."""
    runtime = Runtime(threads=1, device="cpu", precision="fp32")
    encoder = open_encoder(
        given.encoder, runtime, pooling="auto", max_length=128, dropout=0.1, to_learn=False
    )
    tokens = tokens_of(given.texts, 128, encoder.model.config.vocab_size)
    torch.set_num_threads(1)
    return encoder, tokens


def encoding(given, on_ray: bool) -> dict:
    encoder, tokens = random_encoder(given)
    few = tokens.of_rows(np.arange(min(128, tokens.rows)))
    if on_ray:
        with using_cluster(Runtime(cluster="local", threads=2)) as cluster:
            embed_on_cluster(encoder, few, cluster, None)  # starts the processes
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
    FrozenEncoding(encoder, few, "cpu", 2, in_order=False).lead(team, nothing)
    result = compared(
        "encoding in processes",
        lambda: timed(lambda: alone.lead(Team(), nothing)),
        lambda: timed(lambda: work.lead(team, nothing)),
        given.runs,
        close,
    )
    team.close()
    return result


def encode_alone(given, ready, start) -> None:
    """Encode when the other is ready, too."""
    encoder, tokens = random_encoder(given)
    encoder.embed(tokens.of_rows(np.arange(32)))
    ready.wait()
    start.wait()
    encoder.embed(tokens)


def two_programs(given) -> dict:
    """The ratio of two programs at once: twice the work of one."""
    context = multiprocessing.get_context("spawn")

    def seconds_of(count: int) -> tuple[float, None]:
        ready, start = context.Barrier(count + 1), context.Barrier(count + 1)
        programs = [
            context.Process(target=encode_alone, args=(given, ready, start)) for _ in range(count)
        ]
        for program in programs:
            program.start()
        ready.wait()
        start.wait()
        started = time.perf_counter()
        for program in programs:
            program.join()
        return time.perf_counter() - started, None

    found = compared("two programs", lambda: seconds_of(1), lambda: seconds_of(2), 1, lambda *_: True)
    return {**found, "ratio": 2 * found["ratio"]} if "ratio" in found else found


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
    "two programs": two_programs,
    "rankers on Ray": rankers_on_ray,
    "encoding on Ray": lambda given: encoding(given, on_ray=True),
    "fine-tuning in processes": fine_tuning,
    "encoding in processes": lambda given: encoding(given, on_ray=False),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--documents", type=int, default=60_000)
    parser.add_argument("--labels", type=int, default=30_000)
    parser.add_argument("--texts", type=int, default=512)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", action="append", choices=list(STAGES))
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args()
    warm_up(common_kernels())
    earlier = json.loads(given.output.read_text()) if given.output and given.output.exists() else {}
    stages = earlier.get("stages", {})
    for name, measure in STAGES.items():
        if given.only is None or name in given.only:
            measured = {**measure(given), "commit": commit_of(ROOT)}
            if "ratio" not in measured:
                print(f"{name}: other programs used the machine; not recorded", file=sys.stderr)
                continue
            stages[name] = measured
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
