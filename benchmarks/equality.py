"""Asks the same texts in different ways and counts different answers; there should be none.

    python benchmarks/equality.py DATA… -o benchmarks/results/equality.json

For each data set: fewer labels against the first of more, texts alone and in other batches against
one batch, one thread against several, `score` against `evaluate`, a loaded model against the fitted
one, and HTTP against Python, where requests for different numbers of labels are sent at the same time.
Scores are compared too, to the last bit; over HTTP, to six decimals.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import numba
import numpy as np
from commits import commit_of

import treetop
from treetop.data import open_data

KS = (1, 2, 3, 5, 10, 20)
MOST = 50
ALONE = 500  # texts that are asked alone, too


def compared(pairs):
    """Numbers of comparisons and of differences."""
    same = [one == other for one, other in pairs]
    return {"comparisons": len(same), "differences": len(same) - sum(same)}


def limited(rows, k):
    """The first `k` of each list, at most as many as there are."""
    return [row[:k] for row in rows]


def asked_in_python(model, texts, labels, every):
    """Differences by the way of asking."""
    few = slice(None, None, max(1, len(texts) // ALONE))
    half = len(texts) // 2
    fewer = [(model.predict(texts, k), limited(every, k)) for k in KS]
    alone = [
        (model.predict([text], k, threads=1)[0], row[:k])
        for text, row in zip(texts[few], every[few], strict=True)
        for k in KS
    ]
    parts = [*model.predict(texts[half:], MOST), *model.predict(texts[:half], MOST)]
    threads = [(model.predict(texts, MOST, threads=count), every) for count in (1, 4)]
    return {
        "fewer labels": compared(pair for rows in fewer for pair in zip(*rows, strict=True)),
        "alone": compared(alone),
        "another batch": compared(zip(parts, every[half:] + every[:half], strict=True)),
        "one and four threads": compared(p for rows in threads for p in zip(*rows, strict=True)),
        "score and evaluate": compared(
            [
                (model.score(texts, labels), float(model.evaluate(texts, labels, k=(1, k))["P@1"]))
                for k in KS
            ]
        ),
    }


def asked_over_http(folder, texts, every):
    """Differences to `every` of requests with different k that arrive at the same time."""
    command = [sys.executable, "-m", "treetop", "serve", str(folder), "--port", "0"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        address = next(
            word for line in server.stderr for word in line.split() if word.startswith("http://")
        ).rstrip("/.,")
        ks = [KS[number % len(KS)] for number in range(len(texts))]

        def ask(number):
            body = {"text": texts[number], "k": ks[number]}
            answer = client.post(f"{address}/v1/predict", json=body)
            answer.raise_for_status()
            return [(one["label"], one["score"]) for one in answer.json()["results"][0]["labels"]]

        with httpx.Client(timeout=60) as client, ThreadPoolExecutor(16) as pool:
            answers = list(pool.map(ask, range(len(texts))))
    finally:
        server.terminate()
        server.wait()
    # Over HTTP, scores have six decimals.
    rounded = [
        [(label, round(score, 6)) for label, score in row[:k]] for row, k in zip(every, ks, strict=True)
    ]
    return compared(zip(answers, rounded, strict=True))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data", nargs="+", type=Path)
    parser.add_argument("--texts", type=int, default=3000)
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args()
    results = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "commit": commit_of(Path(__file__).parent.parent),
        "versions": {
            "treetop": treetop.__version__,
            "numpy": np.__version__,
            "numba": numba.__version__,
        },
        "seed": 0,
        "data": {},
    }
    for data in given.data:
        dataset = open_data(data)
        train, test = dataset.split("train"), dataset.split("test")
        texts, labels = list(test.texts[: given.texts]), list(test.labels[: given.texts])
        fitted = treetop.XRLinear().fit(train.texts, train.labels)
        with tempfile.TemporaryDirectory() as spare:
            folder = Path(spare) / data.name
            fitted.save(folder)
            loaded = treetop.load(folder)
            every = [list(row) for row in loaded.predict(texts, MOST)]
            row = {"texts": len(texts), "trees": len(loaded.model_.rankers)}
            again = zip(fitted.predict(texts, MOST), every, strict=True)
            row["ways"] = {"fitted and loaded": compared(again)}
            row["ways"] |= asked_in_python(loaded, texts, labels, every)
            row["ways"]["http"] = asked_over_http(folder, texts, every)
        results["data"][data.name] = row
        print(data.name, row, flush=True)
    ways = [way for row in results["data"].values() for way in row["ways"].values()]
    for name in ("comparisons", "differences"):
        results[name] = sum(way[name] for way in ways)
    if given.output:
        given.output.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
