"""Compares two checkouts of treetop: training, prediction and memory.

    python benchmarks/commits.py OLD NEW DATA… --runs 5 -o benchmarks/results/commits.json

Runs alternate between the checkouts, each in a separate process, with the same Python and number of
threads. The figures are medians; the ratio is new to old. `--set NAME=VALUE` changes a setting on each
side that has it.
"""

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

K = 5


def known_settings(estimator, changes: list[str]) -> dict[str, object]:
    """The changes (NAME=VALUE) that this checkout has settings for."""
    written = dict(change.split("=", 1) for change in changes)
    has = estimator().get_params()
    return {name: json.loads(value) for name, value in written.items() if name in has}


def work(kind: str, data: str, threads: int, changes: list[str]) -> dict[str, float]:
    """Train and predict in this process; return times and peak memory."""
    import treetop
    from treetop.data import open_data
    from treetop.kernels import all_kernels

    for kernel in all_kernels():
        kernel.compile()
    dataset = open_data(data)
    train, test = dataset.split("train"), dataset.split("test")
    if kind == "frozen":
        settings = {"fine_tune": False, "max_length": 32, "encoder": "minilm", "precision": "fp32"}
        settings |= known_settings(treetop.XRTransformer, changes)
        model = treetop.XRTransformer(threads=threads, **settings)
    else:
        model = treetop.XRLinear(threads=threads, **known_settings(treetop.XRLinear, changes))
    started, started_cpu = time.perf_counter(), time.process_time()
    model.fit(train.texts, train.labels)
    trained, trained_cpu = time.perf_counter(), time.process_time()
    model.predict_scores(test.texts, K)
    predicted = time.perf_counter()
    single_texts = [
        list(test.texts[number : number + 1]) for number in range(300 if kind == "linear" else 30)
    ]
    model.predict_scores(single_texts[0], K)
    single = []
    for text in single_texts:
        begun = time.perf_counter()
        model.predict_scores(text, K)
        single.append(time.perf_counter() - begun)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "training, s": trained - started,
        "training, CPU s": trained_cpu - started_cpu,
        "prediction, ms per document": 1e3 * (predicted - trained) / len(test),
        "one text, ms": 1e3 * statistics.median(single),
        "peak memory, MB": peak / 1e3,
    }


def run(checkout: Path, data: Path, given: argparse.Namespace) -> dict[str, float]:
    """Run `work` with the code of a checkout."""
    command = [sys.executable, __file__, "--work", given.kind, str(data)]
    command += ["--threads", str(given.threads)]
    command += [f"--set={change}" for change in given.set]
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src"), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def commit_of(checkout: Path) -> str:
    command = ["git", "-C", str(checkout), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("checkouts", nargs="*", type=Path, help="old, new, then data sets")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--kind", choices=["linear", "frozen"], default="linear")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="JSON value")
    parser.add_argument("--work", nargs=2, metavar=("KIND", "DATA"))
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args()
    if given.work:
        print(json.dumps(work(*given.work, given.threads, given.set)))
        return
    old, new, *data = given.checkouts
    results = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "threads": given.threads,
        "seed": 0,
        "old": commit_of(old),
        "new": commit_of(new),
    }
    for source in data:
        rows = [(run(old, source, given), run(new, source, given)) for _ in range(given.runs)]
        figures = {"runs": given.runs, "commit": commit_of(new)}
        for name in rows[0][0]:
            before, after = (statistics.median(row[side][name] for row in rows) for side in (0, 1))
            ratio = statistics.median(row[1][name] / row[0][name] for row in rows)
            figures[name] = {"old": before, "new": after, "ratio": ratio}
            print(
                f"{source.name} {given.kind} {name}: {before:.3f} → {after:.3f}  ({ratio:.3f})",
                flush=True,
            )
        results[", ".join([source.name, given.kind, *given.set])] = figures
    if given.output:
        known = json.loads(given.output.read_text()) if given.output.is_file() else {}
        given.output.write_text(json.dumps({**known, **results}, indent=2) + "\n")


if __name__ == "__main__":
    main()
