"""What each stage of a training sends over the network: two machines of a Ray cluster on one loopback.

    unshare --net python benchmarks/cluster_bytes.py -o benchmarks/results/cluster_bytes.json

In a network namespace of its own, nothing else uses the loopback interface, so its counter of bytes, at
the beginning and the end of a stage, is what the two machines have sent each other in it, with all
that Ray adds, messages within a machine included. Beside it is what was counted: the bytes of what
treetop gives to Ray for the other machine, half of the results (half of the tasks are done there), and
the gradients. The data is generated, with the proportions of Amazon-670K.
"""

import argparse
import fcntl
import json
import os
import platform
import socket
import struct
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT), str(ROOT / "benchmarks")]
os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "HF_HUB_OFFLINE": "1", "GLOO_SOCKET_IFNAME": "lo"}

from commits import commit_of  # noqa: E402
from generated import generate  # noqa: E402

import treetop  # noqa: E402
from treetop.data import open_data  # noqa: E402
from treetop.runtime import Runtime  # noqa: E402
from treetop.runtime.cluster import Cluster  # noqa: E402
from treetop.runtime.progress import Reporter  # noqa: E402

LOOPBACK = "127.0.0.2"  # Ray replaces 127.0.0.1 by the outer address of the machine
SECONDS_AT_REST = 5
STEPS = 10


def raise_loopback() -> None:
    """Switch on the loopback interface, which is off in a new namespace."""
    SIOCGIFFLAGS, SIOCSIFFLAGS, UP = 0x8913, 0x8914, 1
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        named = struct.pack("16sh14s", b"lo", 0, b"")
        flags = struct.unpack("16sh14s", fcntl.ioctl(control, SIOCGIFFLAGS, named))[1]
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sh14s", b"lo", flags | UP, b""))


def bytes_sent() -> int:
    """Bytes that the loopback interface has sent so far."""
    lines = Path("/proc/net/dev").read_text().splitlines()
    (counters,) = (line.split(":")[1].split() for line in lines if line.strip().startswith("lo:"))
    return int(counters[8])


class Meter(Reporter):
    """Counts the bytes of each stage: those that are sent, and those that are known to be necessary."""

    def __init__(self) -> None:
        self.sent: Counter[str] = Counter()
        self.counted: Counter[str] = Counter()
        self.stage, self.before, self.started = "start", bytes_sent(), time.monotonic()
        self.seconds: Counter[str] = Counter()

    def step(self, name, total=None):
        now = bytes_sent()
        self.sent[self.stage] += now - self.before
        self.seconds[self.stage] += time.monotonic() - self.started
        self.stage, self.before, self.started = plain(name), now, time.monotonic()
        return super().step(name, total)

    def results(self, sent_at_rest: float) -> dict:
        """Bytes by stage, without those that are sent at rest."""
        return {
            stage: {
                "sent": round(max(0.0, sent - sent_at_rest * self.seconds[stage])),
                "counted": round(self.counted[stage]),
                "seconds": round(self.seconds[stage], 1),
            }
            for stage, sent in self.sent.items()
            if stage != "start"
        }


def plain(name: str) -> str:
    """The name of a stage without numbers of levels: those of ``rankers, level 1 of 3`` add up."""
    parts = [part for part in name.replace(": ", ", ").split(", ") if not part.startswith("level ")]
    return parts[-1] if parts else "fine-tuning"


@contextmanager
def counting(meter: Meter) -> Iterator[None]:
    """Count what is stored for the other machine, and half of the results."""
    import ray
    from ray._private.worker import global_worker

    def size(value: object) -> int:
        context = global_worker.get_serialization_context()
        return int(context.serialize(value).total_bytes)

    put, run = ray.put, Cluster.run

    def counted_put(value: object) -> object:
        meter.counted[meter.stage] += size(value)
        return put(value)

    def counted_run(self, stage, work, tasks, consume, *others, **options) -> None:
        def counted_consume(task, result):
            meter.counted[meter.stage] += size(result) / 2
            return consume(task, result)

        run(self, stage, work, tasks, counted_consume, *others, **options)

    ray.put, Cluster.run = counted_put, counted_run
    try:
        yield
    finally:
        ray.put, Cluster.run = put, run


def started_cluster():
    """Start two machines of one core each; the first one is that of the driver."""
    from ray.cluster_utils import Cluster as Machines

    options = {"num_cpus": 1, "node_ip_address": LOOPBACK, "include_dashboard": False}
    cluster = Machines(initialize_head=True, head_node_args=options)
    cluster.add_node(**options)
    return cluster


def measured(runtime: Runtime, data: Path, given: argparse.Namespace, at_rest: float) -> dict:
    """Bytes by stage of each training, and of a prediction."""
    split = open_data(data).split("train")
    documents, labels = list(split.texts), split.named_labels(None)
    plain_linear = {"trees": 1, "calibrate": False, "competition": False}
    tuned = {"encoder": given.encoder, "max_length": 64, "batch": 32, "trees": 1, "validation": 0}
    tuned |= {"budget": f"{STEPS} steps", "first_tree": "flat", "precision": "fp32"}
    tuned |= {"largest_level": 10_000, "calibrate": False, "competition": False}
    models = {
        "XRLinear": (treetop.XRLinear(**plain_linear), len(documents)),
        "frozen": (treetop.XRTransformer(**{**tuned, "fine_tune": False}), given.texts),
        "fine-tuned": (treetop.XRTransformer(**tuned), given.texts),
    }
    results = {}
    for name, (model, count) in models.items():
        meter = Meter()
        with counting(meter):
            model.fit(documents[:count], labels[:count], runtime=runtime.changed(reporter=meter))
            meter.step("end")
        if name == "fine-tuned":
            meter.counted["fine-tuning"] += STEPS * bytes_per_step(model)
        stages = meter.results(at_rest)
        results[name] = {"documents": count, "labels": len(model.classes_), "stages": stages}
        print(name, stages, file=sys.stderr, flush=True)
    meter = Meter()
    with counting(meter):
        meter.step("prediction")
        model.predict_scores(documents[: given.texts], runtime=runtime)
        meter.step("end")
    results["prediction"] = {"documents": given.texts, "stages": meter.results(at_rest)}
    return results


def bytes_per_step(model: treetop.XRTransformer) -> int:
    """What two processes send each other in a step: all gradients twice but those of token vectors."""
    network = model.encoder_.model
    vectors = network.get_input_embeddings().weight.numel()
    pooler = sum(weight.numel() for weight in network.pooler.parameters()) if network.pooler else 0
    return 2 * 4 * (sum(weight.numel() for weight in network.parameters()) - vectors - pooler)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--labels", type=int, default=5000)
    parser.add_argument("--texts", type=int, default=200)
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args()
    raise_loopback()
    import ray
    import torch

    cluster = started_cluster()
    runtime = Runtime(cluster=cluster.address, threads=1)
    with tempfile.TemporaryDirectory() as folder:
        counts = generate("amazon-670k", Path(folder), given.labels, threads=1)
        ray.init(address=cluster.address, log_to_driver=False)
        before = bytes_sent()
        time.sleep(SECONDS_AT_REST)
        at_rest = (bytes_sent() - before) / SECONDS_AT_REST
        trainings = measured(runtime, Path(folder), given, at_rest)
    ray.shutdown()
    cluster.shutdown()
    results = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "versions": {
            "treetop": treetop.__version__,
            "ray": ray.__version__,
            "torch": torch.__version__,
        },
        "commit": commit_of(ROOT),
        "seed": 0,
        "steps": STEPS,
        "generated": {"labels": counts.labels, "documents": counts.documents},
        "bytes per second at rest": at_rest,
        "trainings": trainings,
    }
    given.output.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
