"""Random faults in training on several processes and machines: each should end in the same model.

    python benchmarks/faults.py --faults 60 -o benchmarks/results/faults.json

A fault is drawn at random: a process, a rank of Ray Train, a Ray task or a whole machine is killed
(SIGKILL) or stops answering (SIGSTOP), the disk is full, or a file of the run is cut off or damaged.
The training then recovers by itself, or it fails with a message and is resumed, perhaps with another
number of processes. Its model is compared with that of a training which nobody disturbed: the encoder's
weights and the scores, bit by bit (``deterministic=True``). Each fault has its own seed, so that the
script can be stopped and continues where it was.
"""

import argparse
import hashlib
import json
import os
import platform
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT), str(ROOT / "benchmarks")]
LOOPBACK = "127.0.0.2"  # Ray replaces 127.0.0.1 by the outer address of the machine
STEPS = {1: 8, 2: 12}  # of each level
FILES = ("level-1.safetensors", "level-2.safetensors", "checkpoint.safetensors", "rankers.safetensors")
SECONDS = 400  # after which a training that recovers by itself counts as hanging


KINDS = ("process", "leader", "silence", "file", "disk", "chunk", "task", "silent task", "machine")
KINDS = (*KINDS, "silent machine") * 3 + ("rank", "silent rank")  # these two take minutes
STAGES = ("PIFA", "label tree", "rankers")
MACHINES = ("first", "second", "third")


def settings(folder: Path) -> dict:
    return {
        "encoder": str(folder / "encoder"),
        "max_length": 16,
        "batch": 48,
        "budget": "8/12 steps",
        "first_tree": "6-L",
        "trees": 1,
        "validation": 0.2,
        "learning_rate": 2e-3,
        "precision": "fp32",
        "threads": 1,
    }


def digest_of(model, texts: list[str]) -> str:
    """Return a digest of everything that was learned."""
    found = hashlib.sha256()
    if hasattr(model, "history_"):
        for weight in model.encoder_.parameters():
            found.update(weight.detach().numpy().tobytes())
    scores = model.predict_scores(texts, k=20, threads=1)
    for part in (scores.indptr, scores.indices, scores.data):
        found.update(part.tobytes())
    return found.hexdigest()


# What a child process does


def child(work: dict) -> None:
    """Train as `work` says, and print a digest of the model."""
    from tests.tiny import documents, word_corpus

    from treetop import Runtime, XRLinear, XRTransformer
    from treetop.errors import TreetopError

    folder = Path(work["folder"])
    runtime = Runtime(
        deterministic=True,
        checkpoint_minutes=1e-9,
        stall_minutes=work.get("stall", 60) / 60,
        processes=work.get("processes", 1),
    )
    cluster = None
    if work["where"] == "ray":
        cluster, runtime = started_cluster(work, runtime)
    try:
        if work["model"] == "linear":
            texts, labels = word_corpus()
            model = XRLinear(tree="4-16-L", trees=1, threads=1).fit(texts, labels, runtime=runtime)
        else:
            texts, labels = documents(120)
            options = {"run": folder / "run", "resume": True}
            model = XRTransformer(**settings(folder)).fit(texts, labels, runtime=runtime, **options)
        print(digest_of(model, texts))
    except (TreetopError, OSError) as error:
        print(f"failed: {error}")
        sys.exit(2)
    finally:
        if cluster is not None:
            import ray

            ray.shutdown()
            for machine in cluster.list_all_nodes():  # some do not react to anything else
                machine.kill_all_processes(check_alive=False, allow_graceful=False)


def started_cluster(work: dict, runtime):
    """Start machines of one core each; one of them may be killed after a while."""
    from ray.cluster_utils import Cluster

    from treetop.runtime.failpoints import NODE

    noticing = {"health_check_period_ms": 500, "health_check_timeout_ms": 1000}
    noticing["health_check_failure_threshold"] = 3
    options = {"num_cpus": 1, "node_ip_address": LOOPBACK, "include_dashboard": False}
    cluster, machines = Cluster(), {}
    for name in MACHINES:  # its processes inherit the variable
        os.environ[NODE] = name
        more = {"_system_config": noticing} if name == MACHINES[0] else {}
        machines[name] = cluster.add_node(**options, **more)
    os.environ[NODE] = "driver"
    if "machine" in work:
        second = machines["second"].all_processes["raylet"][0].process.pid
        fault = signal.SIGKILL if work["machine"] == "kill" else signal.SIGSTOP
        threading.Thread(target=fail_with, args=(work["folder"], second, fault), daemon=True).start()
    return cluster, runtime.changed(cluster=cluster.address, processes=2)


def fail_with(folder: str, raylet: int, fault: int) -> None:
    """Wait until a process of a machine has failed; then let all others of it fail, too."""
    while not Path(folder, "fault-0").exists():
        time.sleep(0.02)
    children = Path(f"/proc/{raylet}/task/{raylet}/children").read_text().split()
    for process in (*map(int, children), raylet):
        os.kill(process, fault)


# What happens to it


def drawn(number: int, seed: int) -> dict:
    """Draw a fault: what is trained where, what fails there, and how it is resumed."""
    chosen = random.Random(f"{seed}/{number}")
    kind = chosen.choice(KINDS)
    level = chosen.choice(list(STEPS))
    at = {"at": f"level-{level}", "step": chosen.randrange(STEPS[level])}
    tuned = {"where": "here", "model": "transformer", "processes": 2}
    resumed = {**tuned, "processes": chosen.choice([1, 2, 3])}
    linear = {"where": "ray", "model": "linear"}
    cluster = {"where": "ray", "model": "transformer"}
    task = {"at": chosen.choice(STAGES), "step": 0}
    elsewhere = {"at": chosen.choice(STAGES[1:]), "node": "second"}
    file = chosen.choice(FILES)
    faults = {
        "process": (tuned, {**at, "process": 1, "fault": "kill"}),
        "leader": (tuned, {**at, "process": 0, "fault": "kill"}),
        "silence": ({**tuned, "stall": 10}, {**at, "process": 1, "fault": "stop"}),
        "file": (
            tuned,
            [
                {"at": f"after {file}", "fault": chosen.choice(["truncate", "corrupt"])},
                {"at": "level-2", "step": 11, "process": 0, "fault": "kill"},
            ],
        ),
        "disk": (tuned, {"at": f"before {file}", "fault": "disk"}),
        "chunk": (
            {"where": "here", "model": "linear"},
            {"at": "chunks", "fault": chosen.choice(["truncate", "corrupt"])},
        ),
        "task": (linear, {**task, "fault": "kill"}),
        "silent task": ({**linear, "stall": 5}, {**task, "fault": "stop"}),
        "machine": ({**linear, "machine": "kill"}, {**elsewhere, "fault": "kill"}),
        "silent machine": ({**linear, "machine": "stop", "stall": 20}, {**elsewhere, "fault": "stop"}),
        "rank": (cluster, {**at, "process": chosen.randrange(2), "fault": "kill"}),
        "silent rank": ({**cluster, "stall": 10}, {**at, "process": 1, "fault": "stop"}),
    }
    work, points = faults[kind]
    if work["where"] == "ray":
        resumed = {"where": "ray", "model": work["model"]}
    if kind == "chunk":
        resumed = work
    return {"kind": kind, "work": work, "points": points, "resumed": resumed}


def run(work: dict, points: list | dict, folder: Path) -> tuple[int, str]:
    """Train in a child process with faults; return its exit code and the last line that it prints."""
    points = [points] if isinstance(points, dict) else points
    once = [{**point, "once": str(folder / f"fault-{n}")} for n, point in enumerate(points)]
    kept = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE")}
    done = subprocess.run(
        [sys.executable, __file__, "--child", json.dumps({**work, "folder": str(folder)})],
        env={**kept, "TREETOP_FAILPOINT": json.dumps(once), "RAY_USAGE_STATS_ENABLED": "0"},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    lines = done.stdout.strip().splitlines() or [""]
    return done.returncode, lines[-1] if not done.returncode else (done.stderr[-800:] + lines[-1])


def undisturbed(folder: Path, model: str) -> str:
    code, digest = run({"where": "here", "model": model}, [], folder)
    assert code == 0, digest
    return digest


def suffered(fault: dict, encoder: Path, expected: dict[str, str]) -> dict:
    """Let a training suffer a fault and recover or be resumed; say what came of it."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "encoder").symlink_to(encoder)
        started = time.monotonic()
        code, found = run(fault["work"], fault["points"], folder)
        message, again = "", 0
        while code and again < 2:
            message, again = found[-200:], again + 1
            code, found = run(fault["resumed"], [], folder)
        return {
            "kind": fault["kind"],
            "occurred": (folder / "fault-0").exists(),
            "equal": code == 0 and found == expected[fault["work"]["model"]],
            "resumed": again,
            "message": message,
            "result": "" if not code else found,
            "seconds": round(time.monotonic() - started, 1),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--faults", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--minutes", type=float, default=1e9, help="stop after so many; run again to resume"
    )
    parser.add_argument("--only", help="a kind of fault")
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    if "--child" in sys.argv:
        child(json.loads(sys.argv[sys.argv.index("--child") + 1]))
        return
    given = parser.parse_args()
    import ray
    import torch
    from commits import commit_of
    from tests.tiny import save_encoder

    earlier = json.loads(given.output.read_text()) if given.output.exists() else {}
    rows = earlier.get("rows", [])
    known = earlier["undisturbed"] if earlier and earlier["commit"] == commit_of(ROOT) else None
    until = time.monotonic() + 60 * given.minutes
    with tempfile.TemporaryDirectory() as place:
        encoder = Path(save_encoder(Path(place, "encoder")))
        expected = known or {
            model: undisturbed(Path(place), model) for model in ("linear", "transformer")
        }
        number = rows[-1]["number"] + 1 if rows else 0
        while sum(row["occurred"] for row in rows) < given.faults and time.monotonic() < until:
            fault = drawn(number, given.seed)
            if given.only in (None, fault["kind"]):
                rows.append({"number": number, **suffered(fault, encoder, expected)})
                print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
                results = {
                    "machine": f"{platform.machine()}, {os.cpu_count()} cores",
                    "versions": {"torch": torch.__version__, "ray": ray.__version__},
                    "commit": commit_of(ROOT),
                    "seed": given.seed,
                    "faults": sum(row["occurred"] for row in rows),
                    "equal": sum(row["equal"] for row in rows if row["occurred"]),
                    "undisturbed": expected,
                    "rows": rows,
                }
                given.output.write_text(json.dumps(results, indent=2) + "\n")
            number += 1


if __name__ == "__main__":
    main()
