"""How fast files are read: sparse text and text lines, MB a second; then docs/howto/formats.md.

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

from treetop.data.docstrings import load_docstrings
from treetop.data.files import lines_of
from treetop.data.pairs import read_rows, sparse_lines
from treetop.runtime import parallel

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "howto" / "formats.md"
MARKS = ("<!-- reading figures -->", "<!-- end of reading figures -->")
REPEATS = 5


def rate(path, work):
    """Median MB a second."""
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


def measure():
    texts = [text for split in load_docstrings().splits.values() for text in split.texts]
    made = {}
    with tempfile.TemporaryDirectory() as name:
        sparse, lines = Path(name) / "sparse.txt", Path(name) / "lines.txt"
        sparse_file(sparse)
        lines.write_text("\n".join(" ".join(text.split()) for text in texts * 20) + "\n", "utf-8")
        for threads in (1, parallel.thread_count(None)):
            figure = rate(sparse, lambda: read_rows(sparse, True, False, threads))  # noqa: B023
            made[f"sparse text, {threads} threads"] = figure
        made["text lines"] = rate(lines, lambda: list(lines_of(lines)))
    return {
        "megabytes_a_second": made,
        "python": platform.python_version(),
        "cores": parallel.thread_count(None),
        "numpy": np.__version__,
        "repeats": REPEATS,
    }


def render(found):
    rows = [f"| {name} | {value:.0f} |" for name, value in found["megabytes_a_second"].items()]
    where = f"{found['cores']} cores, Python {found['python']}, numpy {found['numpy']}"
    middle = [
        MARKS[0],
        "",
        "| file in memory | MB/s |",
        "| --- | --- |",
        *rows,
        "",
        f"{where}.",
        "",
        MARKS[1],
    ]
    text = PAGE.read_text("utf-8")
    PAGE.write_text(text.split(MARKS[0])[0] + "\n".join(middle) + text.split(MARKS[1])[1], "utf-8")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results" / "reading.json")
    given = parser.parse_args()
    found = measure()
    print(json.dumps(found, indent=2))
    given.out.write_text(json.dumps(found, indent=2) + "\n")
    render(found)


if __name__ == "__main__":
    main()
