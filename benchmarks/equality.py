"""Asks the same texts in different ways and counts different answers; there should be none.

    python benchmarks/equality.py DATA… -o benchmarks/results/equality.json

For each data set: fewer labels against the first of more, texts alone against a batch, one thread
against several, a loaded model against the fitted one, and HTTP against Python, where requests for
different numbers of labels are sent at the same time. Scores are compared too, to the last bit.
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
from commits import commit_of

import treetop
from treetop.data import open_data

KS = (1, 2, 3, 5, 10, 20)
MOST = 50


def differences(some, every):
    """Number of documents whose shorter list is not the beginning of the longer one."""
    return sum(short != long[: len(short)] for short, long in zip(some, every, strict=True))


def limited(rows, k):
    """The first `k` of each list, at most as many as there are."""
    return [row[:k] for row in rows]


def asked_in_python(model, texts, every):
    """Differences by the way of asking."""
    alone = [model.predict([text], 5, threads=1)[0] for text in texts[:: max(1, len(texts) // 500)]]
    together = every[:: max(1, len(texts) // 500)]
    return {
        "fewer labels": sum(
            sum(a != b for a, b in zip(model.predict(texts, k), limited(every, k), strict=True))
            for k in KS
        ),
        "alone": differences(alone, together),
        "one thread": differences(model.predict(texts, MOST, threads=1), every),
        "four threads": differences(model.predict(texts, MOST, threads=4), every),
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
    return sum(
        [label for label, _ in answer] != [label for label, _ in row[:k]]
        or any(abs(a[1] - b[1]) > 1e-6 for a, b in zip(answer, row, strict=False))
        for answer, row, k in zip(answers, every, ks, strict=True)
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data", nargs="+", type=Path)
    parser.add_argument("--texts", type=int, default=3000)
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args()
    results = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "commit": commit_of(Path(__file__).parent.parent),
        "seed": 0,
        "data": {},
    }
    for data in given.data:
        dataset = open_data(data)
        train, texts = dataset.split("train"), list(dataset.split("test").texts[: given.texts])
        fitted = treetop.XRLinear().fit(train.texts, train.labels)
        with tempfile.TemporaryDirectory() as spare:
            folder = Path(spare) / data.name
            fitted.save(folder)
            loaded = treetop.load(folder)
            every = [list(row) for row in loaded.predict(texts, MOST)]
            row = {"texts": len(texts), "trees": len(loaded.model_.rankers)}
            row["fitted and loaded"] = differences(fitted.predict(texts, MOST), every)
            row |= asked_in_python(loaded, texts, every)
            row["http"] = asked_over_http(folder, texts, every)
        results["data"][data.name] = row
        print(data.name, row, flush=True)
    if given.output:
        given.output.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
