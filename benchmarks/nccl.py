"""NCCL on a machine with a single GPU: trainings in two processes beside a training in one.

    python benchmarks/nccl.py -o benchmarks/results/nccl.json

Every training is the command `treetop train` on generated texts, with a random encoder of MiniLM's
shape. Two processes on one GPU are started as on two machines, by a torchrun each (`--nnodes 2`). To
NCCL they are two machines, too (NCCL_HOSTID), so it sends gradients over the loopback interface.
Without dropout all trainings learn the same, up to rounding: losses and weights are compared, vectors
of a frozen encoder, and a training of which a process is killed and which is resumed.
"""

import argparse
import json
import os
import platform
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT), str(ROOT / "benchmarks")]

import numpy as np  # noqa: E402
import torch  # noqa: E402
from commits import commit_of  # noqa: E402
from safetensors.numpy import load_file  # noqa: E402
from tests.tiny import documents, save_encoder  # noqa: E402

MINILM = {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12}
MINILM["intermediate_size"] = 1536
SETTINGS = {
    "max_length": 16,
    "batch": 64,
    "budget": "40/60 steps",
    "first_tree": "6-L",
    "trees": 1,
    "dropout": 0.0,
    "learning_rate": 3e-4,
    "cuda_graphs": "false",
    "checkpoint_minutes": 1e-9,
    "validation": 0,
}
SECONDS = 150
NODE = {"NCCL_SOCKET_IFNAME": "lo", "GLOO_SOCKET_IFNAME": "lo", "NCCL_DEBUG": "INFO"}
FAULT = {"at": "level-2", "step": 30, "process": 1, "fault": "kill"}


def write_data(folder: Path, train: int) -> None:
    """Write a data set of text lines."""
    for split, count, seed in (("train", train, 0), ("test", train // 4, 1)):
        texts, labels = documents(count, seed)
        (folder / f"{split}.txt").write_text("\n".join(texts) + "\n")
        (folder / f"{split}.labels").write_text("\n".join("\t".join(row) for row in labels) + "\n")


class Trainings:
    """Trainings of models in a folder; each takes the data and the encoder there."""

    def __init__(self, folder: Path, device: str, precision: str, keep: str) -> None:
        self.folder, self.keep = folder, keep
        self.settings = {**SETTINGS, "device": device, "precision": precision}

    def arguments(self, name: str, **settings: object) -> list[str]:
        changes = {**self.settings, **settings}
        pairs = [part for key, value in changes.items() for part in ("--set", f"{key}={value}")]
        data, output, encoder = (str(self.folder / part) for part in ("data", name, "encoder"))
        return ["train", data, "-o", output, "--model", "xr-transformer", "--encoder", encoder, *pairs]

    def run(self, name: str, commands: list[list[str]], variables: list[dict[str, str]]) -> dict:
        """Run commands at the same time; return exit code, seconds and messages of the first."""
        started, running = time.perf_counter(), []
        for number, (command, more) in enumerate(zip(commands, variables, strict=True)):
            log = (self.folder / f"{name}-{number}.log").open("w")
            env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), self.keep]), **more}
            running.append(subprocess.Popen(command, env=env, stdout=log, stderr=log))
        try:
            codes = [process.wait(SECONDS) for process in running]
        except subprocess.TimeoutExpired:
            codes = [124]
        for process in running:
            process.kill()
        logs = [(self.folder / f"{name}-{n}.log").read_text() for n in range(len(commands))]
        lines = [line for line in logs[0].splitlines() if line.startswith(("treetop", "python"))]
        return {
            "code": codes[0],
            "seconds": round(time.perf_counter() - started, 1),
            "last lines": lines[-3:] if codes[0] == 0 else logs[0].splitlines()[-12:],
            "nccl": sorted({one for log in logs for one in of_nccl(log)})[:6],
        }

    def alone(self, name: str, *more: str, **settings: object) -> dict:
        command = [sys.executable, "-m", "treetop", *self.arguments(name, **settings), *more]
        return self.run(name, [command], [{}])

    def by_torchrun(
        self, name: str, nodes: int, *more: str, fault: str = "", **settings: object
    ) -> dict:
        """Train with one process per node; every node is this machine."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        train = ["-m", "treetop", *self.arguments(name, **settings), *more]
        commands, variables = [], []
        for node in range(nodes):
            places = ["--nnodes", str(nodes), "--node-rank", str(node), "--nproc-per-node", "1"]
            places += ["--master-addr", "127.0.0.1", "--master-port", str(port)]
            commands.append([sys.executable, "-m", "torch.distributed.run", *places, *train])
            faults = {"TREETOP_FAILPOINT": fault} if fault else {}
            variables.append({**NODE, "NCCL_HOSTID": f"node-{node}", **faults})
        return self.run(name, commands, variables)

    def compared(self, name: str, other: str) -> dict:
        """Compare what two trainings have learned."""
        result: dict[str, object] = {}
        weights = [self.folder / one / "encoder" / "model.safetensors" for one in (name, other)]
        if all(path.is_file() for path in weights):
            own, others = map(load_file, weights)
            difference = max(float(np.abs(own[key] - others[key]).max()) for key in own)
            result["largest difference of weights"] = difference
        vectors = [
            sorted((self.folder / f"{one}.run").rglob("embedding.safetensors")) for one in (name, other)
        ]
        if all(vectors):
            own, others = (load_file(paths[0])["vectors"] for paths in vectors)
            result["largest difference of vectors"] = float(np.abs(own - others).max())
        histories = [self.history(one) for one in (name, other)]
        if all(histories):
            pairs = list(zip(*histories, strict=False))
            result["losses"] = [[own["loss"], others["loss"]] for own, others in pairs]
            result["largest difference of losses, relative"] = max(
                abs(own["loss"] / others["loss"] - 1) for own, others in pairs
            )
        result["P@1"] = [self.precision_of(one) for one in (name, other)]
        return result

    def history(self, name: str) -> list[dict]:
        found = sorted((self.folder / f"{name}.run").rglob("history.jsonl"))
        return [json.loads(line) for path in found for line in path.read_text().splitlines()]

    def precision_of(self, name: str) -> float | None:
        if not (self.folder / name).is_dir():
            return None
        command = [sys.executable, "-m", "treetop", "evaluate", str(self.folder / name)]
        done = subprocess.run(
            [*command, str(self.folder / "data"), "--json"],
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), self.keep])},
            capture_output=True,
            text=True,
            check=False,
        )
        return json.loads(done.stdout)["P@1"] if done.returncode == 0 else None


def of_nccl(log: str) -> list[str]:
    """The lines of a log that say which NCCL sends how."""
    parts = ("NCCL version", "via NET", "Using network", "via SHM", "via P2P", "Duplicate GPU")
    return [
        line.split("NCCL", 1)[-1].strip() for line in log.splitlines() if any(p in line for p in parts)
    ]


def checks(trainings: Trainings) -> dict:
    """All checks by name."""
    frozen = {"fine_tune": "false"}
    results = {"one process": trainings.alone("one")}
    results["torchrun, one process"] = trainings.by_torchrun("torchrun-1", 1)
    results["torchrun, one process"] |= trainings.compared("torchrun-1", "one")
    results["NCCL, two processes"] = trainings.by_torchrun("two", 2)
    results["NCCL, two processes"] |= trainings.compared("two", "one")
    results["frozen, one process"] = trainings.alone("frozen-1", **frozen)
    results["frozen, two processes"] = trainings.by_torchrun("frozen-2", 2, **frozen)
    results["frozen, two processes"] |= trainings.compared("frozen-2", "frozen-1")
    fault = json.dumps(FAULT)
    results["process 1 killed"] = trainings.by_torchrun("killed", 2, fault=fault, stall_minutes=0.3)
    results["process 1 killed, resumed"] = trainings.by_torchrun("killed", 2, "--resume")
    results["process 1 killed, resumed"] |= trainings.compared("killed", "two")
    results["--processes 2 with one GPU"] = trainings.alone("refused", "--processes", "2")
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--precision", action="append", choices=["fp32", "bf16"])
    parser.add_argument("--documents", type=int, default=2000)
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args()
    on_gpu = given.device == "cuda"
    results = {
        "machine": torch.cuda.get_device_name() if on_gpu else platform.machine(),
        "python": platform.python_version(),
        "versions": {"torch": torch.__version__, "numpy": np.__version__},
        "nccl": ".".join(map(str, torch.cuda.nccl.version())) if on_gpu else None,
        "commit": os.environ.get("COMMIT") or commit_of(ROOT),
        "seed": 0,
    }
    for precision in given.precision or ["fp32", "bf16"]:
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            (folder / "data").mkdir()
            write_data(folder / "data", given.documents)
            save_encoder(folder / "encoder", **MINILM)
            trainings = Trainings(folder, given.device, precision, os.environ.get("PYTHONPATH", ""))
            results[precision] = checks(trainings)
        given.output.write_text(json.dumps(results, indent=2) + "\n")
        print(json.dumps(results[precision], indent=2), flush=True)


if __name__ == "__main__":
    main()
