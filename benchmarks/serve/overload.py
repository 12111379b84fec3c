"""Measures the service at its limits; writes benchmarks/results/overload.json.

    python benchmarks/serve/overload.py MODEL DATA [--seconds 10] [--rounds 5] [--only overload …]

MODEL is the folder to serve; the texts come from the test split of DATA. Server and load have cores of
their own, so that what is measured is the server. Measurements:

- overload: rounds of as many requests as 64 clients can send, and of four times as many per second as
  were answered then; goodput is the number of answers with status 200 per second, by the median round.
  Both are sent by the same program; it says which share of its own core it needed. A request that is
  due while all of its 4,000 connections wait for an answer counts as unsent.
- explain: 20 labels of a text of 1 MB alone, and seven of these at once while others ask for labels.
- reload: requests while the folder holds a model that crashes, or hangs, and the server is told to
  load it.
"""

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

from bars import Server, make_bodies, percentile

HERE = Path(__file__).parent
RESULTS = HERE.parent / "results" / "overload.json"
CLIENTS, FACTOR, LABELS, AT_ONCE = 64, 4, 20, 7
CHARACTERS = 1_000_000
# The model that is loaded when a file of this name is beside the folder crashes or hangs.
FRAGILE = """
import os, signal, sys, time
from pathlib import Path
from treetop.serve import leading, run
from treetop.serve.options import ServiceOptions

folder, before = Path(sys.argv[1]), leading.Served

class Served(before):
    def __init__(self, *given):
        super().__init__(*given)
        if folder.with_name("crash").exists():
            os.kill(os.getpid(), signal.SIGSEGV)
        if folder.with_name("hang").exists():
            time.sleep(1000)

leading.Served = Served
options = ServiceOptions(folder, port=0, workers=int(sys.argv[2]), reload_timeout=10.0)
raise SystemExit(run.serve(options))
"""


def send(server, bodies, cores, seconds, *how):
    """Send requests; return the output of steady.py."""
    completed = subprocess.run(
        [sys.executable, HERE / "steady.py", server.address, bodies, "--seconds", str(seconds), *how],
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: os.sched_setaffinity(0, cores),
    )
    return json.loads(completed.stdout)


def post(server, path, body, timeout=60):
    """Status and body of the answer to a request."""
    request = urllib.request.Request(
        server.address + path, json.dumps(body).encode(), {"content-type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def overload(given, bodies, cores):
    """Compare the goodput at four times the capacity with the most that the server can answer."""
    rounds = []
    with Server(given.model, "--workers", str(given.workers), cores=cores[0]) as server:
        send(server, bodies, cores[1], 3, "--clients", str(CLIENTS))
        for _ in range(given.rounds):
            most = send(server, bodies, cores[1], given.seconds, "--clients", str(CLIENTS))
            peak = answered_in_time(most, given.seconds) / given.seconds
            sent = send(server, bodies, cores[1], given.seconds, "--rate", str(FACTOR * peak))
            answers, in_time = sent["answers"], answered_in_time(sent, given.seconds) / given.seconds
            good = [seconds for status, seconds, _ in answers if status == 200]
            refused = [seconds for status, seconds, _ in answers if status == 503]
            rounds.append(
                {
                    "peak_per_second": peak,
                    "offered_per_second": len(answers) / given.seconds,
                    "good_per_second": in_time,
                    "share_of_peak": in_time / peak,
                    "good": len(good),
                    "refused": len(refused),
                    "unsent": sent["unsent"],
                    "failures": sent["failures"],
                    "other": len(answers) - len(good) - len(refused) - sent["unsent"],
                    "generator_share_of_its_core": {
                        "at_peak": most["processor_seconds"] / given.seconds,
                        "at_overload": sent["processor_seconds"] / given.seconds,
                    },
                    "good_p99_ms": 1e3 * (percentile(good, 0.99) or 0.0),
                    "refused_p50_ms": 1e3 * (percentile(refused, 0.5) or 0.0),
                }
            )
            print(json.dumps(rounds[-1]), flush=True)
    share = statistics.median(one["share_of_peak"] for one in rounds)
    return {"factor": FACTOR, "clients": CLIENTS, "share_of_peak": share, "rounds": rounds}


def answered_in_time(sent, seconds):
    """The number of answers with status 200 while requests were being sent."""
    return sum(status == 200 and at < seconds for status, _, at in sent["answers"])


def explain(given, bodies, cores):
    """Explain twenty labels of 1 MB of text, alone and seven times at once."""
    texts = [json.loads(line)["text"] for line in bodies.read_text().splitlines()]
    text = " ".join(texts)
    text = (text * (1 + CHARACTERS // len(text)))[:CHARACTERS]
    with Server(given.model, "--workers", "1", "--max-wait", "60", cores=cores[0]) as server:
        best = post(server, "/v1/predict", {"text": text, "k": LABELS})[1]["results"][0]["labels"]
        body = {"text": text, "labels": [record["label"] for record in best]}
        post(server, "/v1/explain", body)
        alone = [timed(server, "/v1/explain", body) for _ in range(given.rounds)]
        quiet = [timed(server, "/v1/predict", {"text": one}) for one in texts[:100]]
        crew = [
            threading.Thread(target=timed, args=(server, "/v1/explain", body)) for _ in range(AT_ONCE)
        ]
        started, others = time.perf_counter(), []
        for one in crew:
            one.start()
        while any(one.is_alive() for one in crew):
            others.append(timed(server, "/v1/predict", {"text": texts[len(others) % len(texts)]}))
        seconds = time.perf_counter() - started
    return {
        "characters": CHARACTERS,
        "labels": len(best),
        "seconds": statistics.median(alone),
        "at_once": AT_ONCE,
        "at_once_seconds": seconds,
        "predictions_meanwhile": len(others),
        "prediction_p50_ms": 1e3 * percentile(others, 0.5),
        "prediction_max_ms": 1e3 * max(others),
        "prediction_alone_p50_ms": 1e3 * percentile(quiet, 0.5),
    }


def timed(server, path, body):
    """Seconds until an answer."""
    started = time.perf_counter()
    status, answer = post(server, path, body)
    assert status == 200, answer
    return time.perf_counter() - started


def reload(given, bodies, cores):
    """Try to reload a model that crashes and one that hangs, under load."""
    import treetop

    folder = Path(tempfile.mkdtemp(dir=given.model.parent)) / given.model.name
    shutil.copytree(given.model, folder)
    model, results = treetop.load(str(given.model)), {}
    command = [sys.executable, "-c", FRAGILE, str(folder), str(given.workers)]
    try:
        with Server(folder, command=command, cores=cores[0]) as server:
            for name in ("crash", "hang"):
                results[name] = reload_fragile(given, server, bodies, cores, model, folder, name)
    finally:
        shutil.rmtree(folder.parent)
    return results


def reload_fragile(given, server, bodies, cores, model, folder, name):
    """Requests while the server is told to load a model that crashes or hangs."""
    answers = []
    seconds = max(given.seconds, 15)
    load = threading.Thread(
        target=lambda: answers.extend(
            send(server, bodies, cores[1], seconds, "--clients", "16")["answers"]
        )
    )
    load.start()
    folder.with_name(name).touch()
    attempts = []
    while load.is_alive():
        time.sleep(1)
        model.save(folder)
        attempts.append(post(server, "/v1/reload", {})[0])
    load.join()
    folder.with_name(name).unlink()
    return {
        "reloads": attempts.count(409),
        "loaded": attempts.count(200),
        "requests": len(answers),
        "lost": sum(status != 200 for status, _, _ in answers),
    }


MEASUREMENTS = {"overload": overload, "explain": explain, "reload": reload}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workers", type=int, help="default: one per core of the server")
    parser.add_argument("--only", action="append")
    parser.add_argument("--output", type=Path, default=RESULTS)
    given = parser.parse_args()
    given.tokens = 0
    own = sorted(os.sched_getaffinity(0))
    half = max(1, len(own) // 2)
    cores = set(own[:half]), set(own[half:]) or set(own)
    given.workers = given.workers or half
    import treetop

    results = json.loads(given.output.read_text()) if given.output.is_file() else {}
    results["machine"] = {
        "cores": len(own),
        "cores_of_the_server": half,
        "workers": given.workers,
        "python": platform.python_version(),
        "treetop": treetop.__version__,
        "model": given.model.name,
        "data": given.data.name,
        "seconds": given.seconds,
    }
    bodies = make_bodies(given)
    for name in given.only or MEASUREMENTS:
        results[name] = MEASUREMENTS[name](given, bodies, cores)
        print(name, json.dumps(results[name]), flush=True)
        given.output.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
