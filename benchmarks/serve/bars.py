"""Measures the service under load and abuse; writes benchmarks/results/serve.json.

    python benchmarks/serve/bars.py MODEL DATA --name linear --seconds 60 [--only rate …] [--workers 2]

Requires wrk (the Debian package of this name). MODEL is the folder to serve; the texts come from the
test split of DATA, and `--tokens` sets their length. Measurements: rate, overload, swaps, kill, fuzz,
memory. The server and the process that generates the load share the cores of this machine.
"""

import argparse
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

HERE = Path(__file__).parent
RESULTS = HERE.parent / "results" / "serve.json"
CONNECTIONS = 64


class Server:
    """Runs `treetop serve` and observes its processes."""

    def __init__(self, model, *options, command=None, cores=None):
        command = command or [sys.executable, "-m", "treetop", "serve", str(model), "--port", "0"]
        self.process = subprocess.Popen(
            [*command, *options],
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: os.sched_setaffinity(0, cores or os.sched_getaffinity(0)),
        )
        for line in self.process.stderr:
            if found := re.search(r"at (http://\S+)", line):
                self.address = found[1]
                break
        else:
            raise SystemExit("the server has not started")
        threading.Thread(target=self.process.stderr.read, daemon=True).start()
        self.wait_until_ready()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(60)

    def ready(self):
        try:
            with urllib.request.urlopen(self.address + "/readyz", timeout=1) as answer:
                return answer.status == 200
        except OSError:
            return False

    def wait_until_ready(self):
        while not self.ready():
            time.sleep(0.05)

    def generations(self):
        """The processes that have loaded a model, the oldest first."""
        return children_of(self.process.pid)

    def workers(self):
        """The workers of the generation that was started last."""
        return children_of(self.generations()[-1])

    def memory(self, what="Pss"):
        """Bytes of all processes."""
        total = 0
        for process in [self.process.pid, *self.generations(), *self.workers()]:
            text = Path(f"/proc/{process}/smaps_rollup").read_text()
            total += 1024 * sum(int(n) for n in re.findall(rf"^{what}: +(\d+)", text, re.MULTILINE))
        return total


def children_of(process):
    """The child processes of a process."""
    text = Path(f"/proc/{process}/task/{process}/children").read_text()
    return [int(number) for number in text.split()]


def wrk(server, bodies, seconds, connections=CONNECTIONS):
    """Send requests as fast as they are answered; return the figures of wrk."""
    completed = subprocess.run(
        [
            "wrk",
            "-t1",
            f"-c{connections}",
            f"-d{seconds}s",
            "--timeout",
            "20s",
            "-s",
            HERE / "predict.lua",
            server.address + "/",
        ],
        env={**os.environ, "BODIES": str(bodies)},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(re.search(r"JSON (.*)", completed.stdout)[1])


def steady(server, bodies, seconds, rate):
    """Send requests at a constant rate; return (status, seconds, when) of each."""
    completed = subprocess.run(
        [
            sys.executable,
            HERE / "steady.py",
            server.address,
            bodies,
            "--rate",
            str(rate),
            "--seconds",
            str(seconds),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(completed.stdout)["answers"]


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else None


def rate(given, bodies, _):
    """Measure requests per second, with one text each."""
    with Server(given.model, *options(given)) as server:
        wrk(server, bodies, 3)
        found = wrk(server, bodies, given.seconds)
    return {**found, "connections": CONNECTIONS}


def overload(given, bodies, made):
    """Send three times the rate that was reached; measure accepted and refused requests."""
    wanted = 3 * made["rate"]["rate"]
    with Server(given.model, *options(given)) as server:
        wrk(server, bodies, 3)
        answers = steady(server, bodies, given.seconds, wanted)
    good = [seconds for status, seconds, _ in answers if status == 200]
    refused = [seconds for status, seconds, _ in answers if status == 503]
    return {
        "asked_a_second": wanted,
        "answers": len(answers),
        "good": len(good),
        "refused": len(refused),
        "other": len(answers) - len(good) - len(refused),
        "good_a_second": len(good) / given.seconds,
        "good_p99_ms": 1e3 * percentile(good, 0.99),
        "refused_p50_ms": 1e3 * percentile(refused, 0.5) if refused else None,
        "refused_p99_ms": 1e3 * percentile(refused, 0.99) if refused else None,
    }


def swaps(given, bodies, _):
    """Replace the model ten times under load."""
    import treetop

    folder = Path(tempfile.mkdtemp(dir=given.model.parent)) / given.model.name
    shutil.copytree(given.model, folder)
    model, done = treetop.load(str(given.model)), []
    with Server(folder, *options(given)) as server:
        wrk(server, bodies, 2)

        def exchange():
            for _ in range(10):
                time.sleep(given.seconds / 12)
                model.save(folder)
                if len(done) % 2:
                    server.process.send_signal(signal.SIGHUP)
                else:
                    call = urllib.request.Request(server.address + "/v1/reload", method="POST")
                    urllib.request.urlopen(call, timeout=30).read()
                done.append(time.time())

        thread = threading.Thread(target=exchange)
        thread.start()
        found = wrk(server, bodies, given.seconds)
        thread.join()
        text = urllib.request.urlopen(server.address + "/metrics").read().decode()
    shutil.rmtree(folder.parent)
    counted = float(re.search(r"^treetop_reloads_total (\S+)", text, re.MULTILINE)[1])
    return {**found, "swaps": len(done), "taken_over_by_workers": counted}


def kill(given, bodies, _):
    """Kill a worker three times under load, and time its replacement."""
    times, held = [], []
    with Server(given.model, *options(given)) as server:
        wrk(server, bodies, 2)

        def strike():
            for _ in range(3):
                time.sleep(given.seconds / 5)
                victim = server.workers()[0]
                held.append(connections_of(victim))
                os.kill(victim, signal.SIGKILL)
                started = time.monotonic()
                while victim in server.workers() or len(server.workers()) < given.workers:
                    time.sleep(0.002)
                fresh = max(server.workers())
                while not answers_as(server, fresh):
                    time.sleep(0.002)
                times.append(time.monotonic() - started)

        thread = threading.Thread(target=strike)
        thread.start()
        found = wrk(server, bodies, given.seconds)
        thread.join()
        alive = server.ready()
    return {
        **found,
        "kills": len(times),
        "back_seconds": times,
        "alive_after": alive,
        "connections_of_the_killed": sum(held),
    }


def connections_of(process):
    """Count the clients that are connected to a worker."""
    inodes = {
        os.readlink(link)[8:-1]
        for link in Path(f"/proc/{process}/fd").iterdir()
        if os.readlink(link).startswith("socket:")
    }
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    established = [line.split() for line in lines]
    return sum(fields[9] in inodes and fields[3] == "01" for fields in established)


def answers_as(server, process):
    """Whether this process has used processor time."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rsplit(") ", 1)[1].split()
    except OSError:
        return False
    return int(fields[11]) + int(fields[12]) > 2


def memory(given, bodies, _):
    """Measure the memory that a second worker adds, after load."""
    size = sum(file.stat().st_size for file in given.model.rglob("*") if file.is_file())
    totals = []
    for workers in (1, 2):
        with Server(given.model, "--workers", str(workers)) as server:
            wrk(server, bodies, max(5, given.seconds // 4))
            totals.append(server.memory())
    added = totals[1] - totals[0]
    return {
        "model_mb": size / 1e6,
        "one_worker_mb": totals[0] / 1e6,
        "two_workers_mb": totals[1] / 1e6,
        "added_mb": added / 1e6,
        "added_share_of_model": added / size,
    }


def fuzz(given, bodies, _):
    """Send 100,000 requests that are malformed, oversized, slow or truncated."""
    small = ["--max-body", "0.2"]
    with Server(given.model, *options(given), *small) as server:
        wrk(server, bodies, 3)
        command = [sys.executable, HERE / "fuzz.py", server.address, "--seed"]
        subprocess.run([*command, "0", "--count", "10000"], check=True, stdout=subprocess.PIPE)
        before, workers = server.memory("Rss"), set(server.workers())
        started = time.monotonic()
        made = subprocess.run(
            [*command, "1", "--count", str(given.fuzz)], check=True, stdout=subprocess.PIPE, text=True
        )
        after = server.memory("Rss")
        good = wrk(server, bodies, 2)
        return {
            "requests": given.fuzz,
            "seconds": time.monotonic() - started,
            "answers": json.loads(made.stdout),
            "rss_before_mb": before / 1e6,
            "rss_after_mb": after / 1e6,
            "rss_growth": after / before - 1,
            "workers_survived": set(server.workers()) == workers,
            "good_after": good["failed"] == 0,
        }


def options(given):
    return ["--workers", str(given.workers), *given.option]


BARS = {
    "rate": rate,
    "overload": overload,
    "swaps": swaps,
    "kill": kill,
    "fuzz": fuzz,
    "memory": memory,
}


def of_length(text, given):
    """Repeat and truncate a text to `--tokens` tokens of the model's encoder."""
    import treetop

    if not hasattr(given, "tokenizer"):
        given.tokenizer = treetop.load(str(given.model)).encoder_.tokenizer
    ids = given.tokenizer(text, add_special_tokens=False)["input_ids"] or [0]
    ids = (ids * given.tokens)[: given.tokens - 2]
    return given.tokenizer.decode(ids)


def make_bodies(given):
    from treetop.data import open_data

    texts = open_data(given.data, None, None).split("test").texts[:3000]
    if given.tokens:
        texts = [of_length(text, given) for text in texts]
    path = Path(tempfile.mkdtemp()) / "bodies.jsonl"
    path.write_text("".join(json.dumps({"text": text, "k": 5}) + "\n" for text in texts))
    return path


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("--name", required=True)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--only", action="append")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=0)
    parser.add_argument("--fuzz", type=int, default=100_000)
    parser.add_argument("--option", action="append", default=[])
    given = parser.parse_args()
    bodies = make_bodies(given)
    whole = json.loads(RESULTS.read_text()) if RESULTS.is_file() else {}
    made = whole.setdefault(given.name, {})
    import treetop

    made["machine"] = {
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "treetop": treetop.__version__,
        "model": given.model.name,
        "data": given.data.name,
        "workers": given.workers,
        "seconds": given.seconds,
        "options": given.option,
        "tokens_per_text": given.tokens or None,
    }
    for name in given.only or BARS:
        made[name] = BARS[name](given, bodies, made)
        print(name, json.dumps(made[name]), flush=True)
        RESULTS.write_text(json.dumps(whole, indent=1) + "\n")


if __name__ == "__main__":
    main()
