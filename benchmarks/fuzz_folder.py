"""Opens mutated model folders and counts what happens: crash, hang, memory, error, refused or right.

    python benchmarks/fuzz_folder.py [--count 20000] [--seed 0] [--kinds tree,onnx] [--out FILE]
    python benchmarks/fuzz_folder.py --kinds tree --number 17        # one mutant, with its traceback

Mutants come from all folders in tests/folders, written by version 1 of the format, and from new ones.
Each is opened in a child of a process that has everything in memory already, so that it takes
milliseconds: loaded, asked for labels and explanations, served, compressed and loaded again.

A mutant is *refused* if it ends with a `TreetopError` of one line, and *right* if its answers are
possible ones. Everything else is a failure. The memory for data that a child may add is what the folder
needed before it was changed, and twice its files.
"""

import argparse
import json
import os
import platform
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter, deque
from pathlib import Path
from random import Random

# A child of a process with threads of OpenMP would wait for them forever.
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["HF_HUB_OFFLINE"] = "1"
sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import scipy.sparse as sp
from tests.mutants import mutant

import treetop
from treetop.errors import TreetopError
from treetop.model.compress import compress
from treetop.model.folder import read_model, write_model
from treetop.model.model import Model
from treetop.serve.batching import Piece
from treetop.serve.engine import PredictQuery, Served

ROOT = Path(__file__).parents[1]
FOLDERS = ROOT / "tests" / "folders"
FAILURES = ("crash", "hang", "memory", "error")
OUTCOMES = (*FAILURES, "refused", "right")
RUNTIME = treetop.Runtime(threads=1, precision="fp32", device="cpu")
# Of processor time, and until a child is killed that only waits.
SECONDS, WAITED = 10, 120
SLACK, MOST = 16 << 20, 4 << 30
QUERIES = ["redapple bluetree oldboat", "the newhouse", ""]


def new_folders(target):
    """Write models of today, with everything that those in tests/folders lack."""
    from tests.folders.make_folders import problem

    texts, labels = problem()
    numbers = [[hash_of(name) for name in names] for names in labels]
    treetop.XRLinear(keep_documents=True, tree="4-L").fit(texts, labels).save(target / "new")
    treetop.XRLinear(ngrams="word:1-2+char:2-3").fit(texts, numbers).save(target / "new-integers")
    X = sp.random(96, 30, 0.3, "csr", np.float32, np.random.default_rng(3))
    treetop.XRLinear().fit(X, [[n > 0 for n in names[:1]] for names in numbers]).save(
        target / "new-booleans"
    )


def hash_of(name):
    return sum(map(ord, name)) % 50 - 10


def folders_in(place, asked):
    """Copy the folders of some kinds, or of all, to one place, on a disk in memory."""
    for folder in sorted(path for path in FOLDERS.iterdir() if (path / "config.json").is_file()):
        if not asked or folder.name in asked:
            shutil.copytree(folder, place / folder.name)
    if not asked or any(name.startswith("new") for name in asked):
        new_folders(place)
    # Those without torch first: a process without it forks much faster.
    return sorted(place.iterdir(), key=lambda path: (uses_torch(path), path.name))


def uses_torch(folder):
    return any(path.parent.name == "encoder" for path in folder.rglob("tokenizer.json"))


def documents_for(kind):
    if kind in ("matrix", "new-booleans"):
        return sp.load_npz(FOLDERS / "matrix-queries.npz")[:3]
    return QUERIES


def try_out(folder, kind, served):
    """Use a model as its users do; raise unless its answers are possible ones."""
    documents = documents_for(kind)
    if served:
        serve_once(folder, documents)
        return
    model = treetop.load(folder, runtime=RUNTIME)
    answers = check_scores(model.predict_scores(documents, 7))
    repr(model), model.predict(documents, k=3)
    for explanation in model.explain(documents[0]):
        json.dumps(explanation.to_dict(), allow_nan=False)
    plain = read_model(folder, runtime=RUNTIME)
    again = folder.with_name(folder.name + "-again")
    if isinstance(plain, Model):
        compressed, _ = compress(plain, folder, None, "int8", RUNTIME)
        write_model(compressed, again)
        check_scores(treetop.load(again, runtime=RUNTIME).predict_scores(documents, 7))
    else:
        model.save(again)
        restored = treetop.load(again, runtime=RUNTIME).predict_scores(documents, 7)
        assert (restored != answers).nnz == 0, "the saved model answers differently"


def serve_once(folder, documents):
    """Answer a request, as the server does."""
    served = Served(folder, RUNTIME)
    served.prepare()
    if served.columns is not None:  # a changed text model too may say that it takes features
        documents = [served.warm_up_document]
    piece = Piece(documents, PredictQuery(k=3))
    for answers in served.answer([piece], RUNTIME):
        json.dumps(answers, allow_nan=False)
    served.search.find("r", 5)


def check_scores(scores):
    """Return scores; raise unless they are finite, best first, and of labels that exist."""
    assert np.isfinite(scores.data).all(), "scores are not finite"
    assert ((scores.indices >= 0) & (scores.indices < scores.shape[1])).all(), "labels do not exist"
    for start, end in zip(scores.indptr[:-1], scores.indptr[1:]):
        assert (np.diff(scores.data[start:end]) <= 0).all(), "the best is not first"
        assert len(set(scores.indices[start:end].tolist())) == end - start, "a label occurs twice"
    return scores


def outcome_of(folder, kind, served):
    """Return what happens to a mutant, and the message."""
    try:
        try_out(folder, kind, served)
    except TreetopError as error:
        lines = str(error).splitlines()
        if len(lines) != 1 or len(lines[0]) > 1000:
            return (
                "error",
                f"message of {len(lines)} lines, {len(str(error))} characters: {str(error)[:300]}",
            )
        if wants_memory(str(error)):
            return "memory", str(error)
        return "refused", str(error).replace(str(folder), "MODEL")
    except (Exception, SystemExit) as error:
        place = traceback.extract_tb(error.__traceback__)
        own = [
            frame for frame in place if "/treetop/" in frame.filename or "fuzz_folder" in frame.filename
        ]
        where = f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else "?"
        of_memory = isinstance(error, MemoryError) or wants_memory(str(error))
        return (
            "memory" if of_memory else "error",
            f"{type(error).__name__} at {where}: {str(error)[:300]}",
        )
    return "right", ""


def wants_memory(message):
    """Whether a library says that it could not get the memory it asked for."""
    return "alloc" in message or "out of memory" in message or "MemoryError" in message


def data_bytes():
    """Return the memory for data of this process, which RLIMIT_DATA limits."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmData"))


class Child:
    """A process that opens a mutant, and may add `room` bytes of data."""

    def __init__(self, folder, kind, served, room):
        self.reader, writer = os.pipe()
        self.started, self.pid = time.monotonic(), os.fork()
        if self.pid == 0:
            self.work(writer, folder, kind, served, room)
        os.close(writer)

    def work(self, writer, folder, kind, served, room):
        """Open the mutant and write the outcome; never returns."""
        try:
            null = os.open(os.devnull, os.O_RDWR)
            for handle in (0, 1, 2):
                os.dup2(null, handle)
            limit = data_bytes() + room
            resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
            resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            outcome = outcome_of(folder, kind, served)
            os.write(writer, json.dumps(outcome).encode()[: 1 << 15])
        finally:
            os._exit(0)

    def outcome(self):
        """Wait for the process and return what happened, and the message."""
        left = max(0.0, self.started + WAITED - time.monotonic())
        ready, _, _ = select.select([self.reader], [], [], left)
        if not ready:
            os.kill(self.pid, signal.SIGKILL)
        answer = os.read(self.reader, 1 << 16) if ready else b""
        os.close(self.reader)
        _, status = os.waitpid(self.pid, 0)
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        if number in (signal.SIGXCPU, signal.SIGKILL):
            return "hang", f"more than {SECONDS} s of processor time, or no answer in {WAITED} s"
        if number:
            return "crash", signal.Signals(number).name
        return tuple(json.loads(answer)) if answer else ("crash", "no answer")


def room_for(folder, kind):
    """Return the bytes that the unchanged folder needs, found by bisection, plus twice its files."""
    low, high = 0, 1 << 30
    ways = (False, True)
    while high - low > 4 << 20:
        middle = (low + high) // 2
        fits = all(Child(folder, kind, way, middle).outcome()[0] == "right" for way in ways)
        low, high = (low, middle) if fits else (middle, high)
    files = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return high + 2 * files + SLACK


def fuzz(source, work, numbers, seed, jobs):
    """Open the mutants of a folder, some at a time; return counts and failures."""
    kind = source.name
    for way in (False, True):
        with tempfile.TemporaryDirectory(dir=work) as spare:
            shutil.copytree(source, Path(spare) / "m")
            try_out(Path(spare) / "m", kind, way)  # compiles, imports and shows that it works
    with tempfile.TemporaryDirectory(dir=work) as spare:
        shutil.copytree(source, Path(spare) / "m")
        room = room_for(Path(spare) / "m", kind)
    counts, failures, running, started = Counter(), [], deque(), time.perf_counter()

    def collect():
        number, spare, changes, child = running.popleft()
        outcome, message = child.outcome()
        shutil.rmtree(spare)
        counts[outcome] += 1
        if outcome in FAILURES:
            row = {"number": number, "outcome": outcome, "changes": changes, "message": message}
            failures.append(row)
            print(json.dumps({"kind": kind, **row}), flush=True)

    for number in numbers:
        if len(running) == jobs:
            collect()
        chance, spare = Random(f"{seed}/{kind}/{number}"), Path(tempfile.mkdtemp(dir=work))
        changes = mutant(source, spare / "m", chance)
        served = chance.random() < 0.3
        running.append((number, spare, changes, Child(spare / "m", kind, served, room)))
    while running:
        collect()
    seconds = time.perf_counter() - started
    row = {outcome: counts[outcome] for outcome in OUTCOMES}
    print(kind, row, f"{seconds:.0f} s, {room >> 20} MB", flush=True)
    return {**row, "megabytes": room >> 20, "seconds": round(seconds), "failures": failures}


def show(source, work, number, seed):
    """Open one mutant in this process."""
    chance = Random(f"{seed}/{source.name}/{number}")
    folder = Path(tempfile.mkdtemp(dir=work)) / "m"
    print(mutant(source, folder, chance), flush=True)
    try_out(folder, source.name, chance.random() < 0.3)
    print("right")


def versions():
    from importlib.metadata import version

    names = ("numpy", "scipy", "numba", "torch", "transformers", "tokenizers", "onnxruntime")
    return {"python": platform.python_version(), **{name: version(name) for name in names}}


def commit():
    asked = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return asked.stdout.strip()


def finished_kinds(given):
    """Counts of the kinds in the output of an earlier run at this commit."""
    if not given.out.is_file():
        return {}
    facts = json.loads(given.out.read_text("utf-8"))
    same = (facts["commit"], facts["seed"]) == (commit(), given.seed)
    return facts["kinds"] if same else {}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", default="")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--number", type=int)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--resume", action="store_true", help="keep the kinds of OUT that are done")
    parser.add_argument("--minutes", type=float, help="begin no further kind after this time")
    given = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_DATA, (MOST, MOST))  # of this process and of all children
    in_memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=in_memory if in_memory.is_dir() else None) as spare:
        place, work = Path(spare) / "folders", Path(spare) / "work"
        place.mkdir(), work.mkdir()
        asked = set(filter(None, given.kinds.split(",")))
        sources = [path for path in folders_in(place, asked) if not asked or path.name in asked]
        if given.number is not None:
            show(sources[0], work, given.number, given.seed)
            return
        kinds = finished_kinds(given) if given.resume else {}
        started, before = time.time(), sum(kind["seconds"] for kind in kinds.values())
        for position, source in enumerate(sources):
            if source.name not in kinds:
                if given.minutes and time.time() - started > 60 * given.minutes:
                    sys.exit("stopped: run again with --resume")
                share = given.count * (position + 1) // len(sources) - given.count * position // len(
                    sources
                )
                kinds[source.name] = fuzz(source, work, range(share), given.seed, given.jobs)
            total = {outcome: sum(kind[outcome] for kind in kinds.values()) for outcome in OUTCOMES}
            if given.out:
                facts = {
                    "mutants": sum(total.values()),
                    "seed": given.seed,
                    "total": total,
                    "seconds": round(before + time.time() - started),
                    "kinds": kinds,
                    "machine": {"processor": platform.machine(), "cores": os.cpu_count()},
                    "versions": versions(),
                    "commit": commit(),
                }
                given.out.write_text(json.dumps(facts, indent=1) + "\n", "utf-8")
    print("total", total, flush=True)
    sys.exit(any(total[outcome] for outcome in FAILURES))


if __name__ == "__main__":
    main()
