"""What each stage of a training sends over the network: two machines of a Ray cluster on one loopback.

    unshare --net python benchmarks/cluster_bytes.py -o benchmarks/results/cluster_bytes.json

In a network namespace of its own, nothing else uses the loopback interface, so its counter of bytes, at
the beginning and the end of a stage, is what the two machines have sent each other in it, with all
that Ray adds. The data is generated, with the proportions of Amazon-670K.
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
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT), str(ROOT / "benchmarks")]
os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "HF_HUB_OFFLINE": "1", "GLOO_SOCKET_IFNAME": "lo"}

from commits import commit_of  # noqa: E402
from generated import generate  # noqa: E402

import treetop  # noqa: E402
from treetop.data import open_data  # noqa: E402
from treetop.runtime import Runtime  # noqa: E402
from treetop.runtime.progress import Reporter  # noqa: E402

LOOPBACK = "127.0.0.2"  # Ray replaces 127.0.0.1 by the outer address of the machine
SECONDS_AT_REST = 5


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
    """Counts the bytes of each stage, without its numbers."""

    def __init__(self) -> None:
        self.sent: Counter[str] = Counter()
        self.stage, self.before = "start", bytes_sent()

    def step(self, name, total=None):
        now = bytes_sent()
        self.sent[self.stage] += now - self.before
        plain = name.partition(", level")[0].partition(": ")[-1] or name.partition(", level")[0]
        self.stage, self.before = plain.rpartition(", ")[2], now
        return super().step(name, total)


def started_cluster():
    """Start two machines of one core each; the first one is that of the driver."""
    from ray.cluster_utils import Cluster

    options = {"num_cpus": 1, "node_ip_address": LOOPBACK, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=options)
    cluster.add_node(**options)
    return cluster


def measured(runtime: Runtime, data: Path, encoder: str, texts: int) -> dict:
    """Bytes by stage of each training."""
    split = open_data(data).split("train")
    documents, labels = list(split.texts), split.named_labels(None)
    tuned = {"encoder": encoder, "max_length": 64, "batch": 32, "budget": "10 steps", "trees": 1}
    tuned |= {"first_tree": "flat", "precision": "fp32", "largest_level": 1000, "validation": 0}
    models = {
        "XRLinear": (treetop.XRLinear(trees=1), len(documents)),
        "frozen": (treetop.XRTransformer(**{**tuned, "fine_tune": False}), texts),
        "fine-tuned": (treetop.XRTransformer(**tuned), texts),
    }
    results = {}
    for name, (model, count) in models.items():
        meter = Meter()
        model.fit(documents[:count], labels[:count], runtime=runtime.changed(reporter=meter))
        meter.step("end")
        results[name] = {
            "documents": count,
            "labels": len(model.classes_),
            "bytes": dict(meter.sent),
        }
        print(name, {stage: f"{sent / 1e6:.1f} MB" for stage, sent in meter.sent.items()}, flush=True)
    meter = Meter()
    meter.step("prediction")
    model.predict_scores(documents[:texts], runtime=runtime)
    meter.step("end")
    results["prediction"] = {"documents": texts, "bytes": {"prediction": meter.sent["prediction"]}}
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--labels", type=int, default=20_000)
    parser.add_argument("--texts", type=int, default=1000)
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
        trainings = measured(runtime, Path(folder), given.encoder, given.texts)
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
        "generated": {"labels": counts.labels, "documents": counts.documents},
        "bytes per second at rest": at_rest,
        "trainings": trainings,
    }
    given.output.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
