"""The first run on a new machine and the first text of a new process, two checkouts in turn.

    python benchmarks/first_run.py OLD NEW -o benchmarks/results/first_run.json

"compiling" is what training and predicting by command take with an empty cache of compiled kernels,
less what they take with a full one. "first text" is a new Python process that loads a model and
predicts one text, all imports included.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from commits import commit_of

FIRST_TEXT = "import treetop; print(treetop.load({model!r}).predict(['the oven and the bread'], 3))"
TOPICS = {
    "food": "bread oven butter flour sugar apple soup",
    "boats": "sail anchor harbour wave mast rope tide",
    "sky": "star cloud moon rain thunder planet comet",
}


def write_data(folder: Path, documents: int = 300) -> Path:
    """A small data set; its size hardly matters to what is measured."""
    folder.mkdir()
    rows = [
        (f"the {words[n % 7]} and the {words[n % 5]} number {n}", topic)
        for n in range(documents)
        for topic, words in [list((t, w.split()) for t, w in TOPICS.items())[n % 3]]
    ]
    (folder / "train.txt").write_text("".join(f"{text}\n" for text, _ in rows))
    (folder / "train.labels").write_text("".join(f"{topic}\n" for _, topic in rows))
    return folder


def seconds(checkout: Path, cache: Path, arguments: list[str]) -> float:
    """Wall-clock time of a Python process with the code of a checkout."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(checkout / "src"),
        "NUMBA_CACHE_DIR": str(cache),
        "HF_HUB_OFFLINE": "1",
    }
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return time.perf_counter() - started


def measure(checkout: Path, data: Path, folder: Path, starts: int) -> dict[str, float]:
    """One round: empty cache, full cache, then some cold starts."""
    cache, model, again = folder / "cache", folder / "model", folder / "again"
    train = ["-m", "treetop", "train", str(data), "-o"]
    cold = seconds(checkout, cache, [*train, str(model)])
    warm = seconds(checkout, cache, [*train, str(again)])
    text = folder / "text.txt"
    text.write_text("the oven and the bread\n")
    predict = ["-m", "treetop", "predict", str(model), str(text)]
    cold_predict = seconds(checkout, folder / "cache of prediction", predict)
    warm_predict = statistics.median(seconds(checkout, cache, predict) for _ in range(starts))
    program = ["-c", FIRST_TEXT.format(model=str(model))]
    first = statistics.median(seconds(checkout, cache, program) for _ in range(starts))
    return {
        "compiling to train, s": cold - warm,
        "compiling to predict, s": cold_predict - warm_predict,
        "first text from Python, s": first,
        "first text by command, s": warm_predict,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as spare:
        data = write_data(Path(spare) / "data")
        for number in range(given.runs):
            row = []
            for name, checkout in (("old", given.old), ("new", given.new)):
                folder = Path(spare) / f"{name} {number}"
                folder.mkdir()
                row.append(measure(checkout, data, folder, given.starts))
            rows.append(row)
    results = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "old": commit_of(given.old),
        "new": commit_of(given.new),
        "runs": given.runs,
    }
    for name in rows[0][0]:
        before, after = (statistics.median(row[side][name] for row in rows) for side in (0, 1))
        ratio = statistics.median(row[1][name] / row[0][name] for row in rows)
        results[name] = {"old": before, "new": after, "ratio": ratio}
        print(f"{name}: {before:.3f} → {after:.3f}  ({ratio:.3f})", flush=True)
    if given.output:
        given.output.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
