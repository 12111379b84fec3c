"""Measures how close the estimate before training comes to the truth: processor time and memory.

    python benchmarks/advice.py DATA_FOLDER

DATA_FOLDER contains data sets in the text-line format, one folder each. The defaults of XRLinear are
trained in a process of its own per data set, on one thread, where the estimated seconds are those of
the processor, which do not depend on what else the machine does. Results are added to
benchmarks/results/advice.json after each run; `--again` repeats those that are there.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

from linear import machine, versions

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "advice.json"
SETS = (
    "cooking",
    "cve-libraries",
    "debian-debtags",
    "debian-debtags-ja",
    "debian-depends",
    "eurlex57k",
)
# What the steps of training are called in the estimate.
STAGES = {
    "competition": "competition",
    "text features": "text features",
    "label tree": "label trees",
    "rankers": "rankers",
    "calibration": "calibration",
}


def work(source: str, threads: int) -> dict[str, object]:
    """Estimate and train in this process."""
    import treetop
    from treetop.data import open_data
    from treetop.kernels import common_kernels
    from treetop.kernels.warming import warm_up
    from treetop.labels.vocabulary import vocabulary_of
    from treetop.runtime import Runtime
    from treetop.runtime.memory import peak_memory
    from treetop.runtime.progress import Reporter
    from treetop.settings.schema import LinearSettings
    from treetop.training.advice.advising import estimate_training
    from treetop.training.advice.trial import CpuClock

    train = open_data(source).split("train")
    Y = vocabulary_of(train.labels).encode(train.labels)
    warm_up(common_kernels(), threads, Reporter())
    treetop.XRLinear(threads=threads).fit(train.texts[:600], Y[:600])
    estimate, _ = estimate_training(train.texts, Y, LinearSettings(), Runtime(threads=threads))
    assert estimate is not None
    clock = CpuClock()
    treetop.XRLinear(threads=threads).fit(train.texts, Y, report=clock)
    clock.close()
    stages = dict.fromkeys(STAGES.values(), 0.0)
    for name, seconds in clock.seconds:
        for part, stage in STAGES.items():
            if part in name:
                stages[stage] += seconds
                break
    return {
        "documents": Y.shape[0],
        "labels": Y.shape[1],
        "estimate": estimate.as_json(),
        "truth": {
            "seconds": sum(seconds for _, seconds in clock.seconds),
            "memory": peak_memory(),
            "stages": stages,
        },
    }


def commit() -> str:
    """The commit that is measured."""
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=HERE, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("data", nargs="?", type=Path)
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--work", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.work:
        print(json.dumps(work(chosen.work, chosen.threads)))
        return
    results = json.loads(chosen.results.read_text()) if chosen.results.exists() else {}
    results.update(machine=machine(), versions=versions({"treetop": sys.executable}))
    results.update(threads=chosen.threads, seed=0)
    sets = results.setdefault("sets", {})
    for name in chosen.sets:
        if name in sets and not chosen.again:
            continue
        command = [sys.executable, __file__, "--work", str(chosen.data / name)]
        command += ["--threads", str(chosen.threads)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(done.stderr)
        found = json.loads(done.stdout.splitlines()[-1])
        sets[name] = {**found, "commit": commit()}
        ratios = (found["estimate"][key] / found["truth"][key] for key in ("seconds", "memory"))
        print(
            name,
            "estimate to truth, seconds and memory:",
            *(f"{one:.2f}" for one in ratios),
            flush=True,
        )
        chosen.results.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
