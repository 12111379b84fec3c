"""Measures how fast files are read, in MB per second, and writes the table in docs/howto/formats.md.

python benchmarks/reading.py [--out benchmarks/results/reading.json]
"""

import argparse
import json
import platform
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from treetop.data.files import lines_of
from treetop.data.pairs import read_rows, sparse_lines
from treetop.runtime import parallel

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "howto" / "formats.md"
MARKS = ("<!-- reading figures -->", "<!-- end of reading figures -->")
REPEATS = 5


def rate(path, work):
    """Return the median rate in MB per second."""
    work()
    times = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return path.stat().st_size / 1e6 / float(np.median(times))


def sparse_file(path, rows=40_000, features=100):
    rng = np.random.default_rng(0)
    X = sp.csr_matrix(
        (
            rng.random(rows * features, np.float32),
            np.sort(rng.integers(0, 100_000, (rows, features)), axis=1).ravel(),
            np.arange(0, rows * features + 1, features),
        ),
        shape=(rows, 100_000),
    )
    Y = sp.csr_matrix(rng.random((rows, 50)) < 0.1)
    path.write_text("\n".join(sparse_lines(X, Y)) + "\n")


def text_file(path, rows=200_000, words=40):
    """Write lines of random words of realistic lengths."""
    rng = np.random.default_rng(0)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    vocabulary = ["".join(rng.choice(letters, rng.integers(2, 12))) for _ in range(5000)]
    chosen = np.minimum(rng.zipf(1.3, (rows, words)), len(vocabulary)) - 1
    path.write_text("".join(" ".join(vocabulary[n] for n in row) + "\n" for row in chosen), "utf-8")


def measure():
    rates = {}
    with tempfile.TemporaryDirectory() as name:
        sparse, lines = Path(name) / "sparse.txt", Path(name) / "lines.txt"
        sparse_file(sparse)
        text_file(lines)
        for threads in (1, parallel.thread_count(None)):
            name = f"sparse text, {threads} thread{'s' * (threads > 1)}"
            rates[name] = rate(sparse, lambda: read_rows(sparse, True, False, threads))  # noqa: B023
        rates["text lines"] = rate(lines, lambda: list(lines_of(lines)))
    return {
        "megabytes_per_second": rates,
        "python": platform.python_version(),
        "cores": parallel.thread_count(None),
        "numpy": np.__version__,
        "repeats": REPEATS,
    }


def render(results):
    rates = results.get("megabytes_per_second") or results["megabytes_a_second"]
    rows = [f"| {name} | {value:.0f} |" for name, value in rates.items()]
    machine = f"{results['cores']} cores, Python {results['python']}, numpy {results['numpy']}"
    middle = [
        MARKS[0],
        "",
        "| file, in the page cache | MB/s |",
        "| --- | --- |",
        *rows,
        "",
        f"{machine}.",
        "",
        MARKS[1],
    ]
    text = PAGE.read_text("utf-8")
    PAGE.write_text(text.split(MARKS[0])[0] + "\n".join(middle) + text.split(MARKS[1])[1], "utf-8")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results" / "reading.json")
    arguments = parser.parse_args()
    results = measure()
    print(json.dumps(results, indent=2))
    arguments.out.write_text(json.dumps(results, indent=2) + "\n")
    render(results)


if __name__ == "__main__":
    main()
