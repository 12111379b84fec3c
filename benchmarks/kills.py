"""Kills treetop at random moments and counts what is lost; nothing should be.

    python benchmarks/kills.py --kills 300 -o benchmarks/results/kills.json

A scenario is a command in a folder of its own, beside files of a user. It is killed (SIGKILL, with
its process group) once or several times in a row, at random moments of the time that it takes, and
then run again without a kill. Afterwards

* every file that it writes equals that of a run which nobody disturbed, byte for byte,
* the files of the user are as they were,
* nothing else is left, in the folder and in the folder for temporary files.

A warm server process has imported everything and is forked for each run, so that a run begins at once.
"""

import argparse
import hashlib
import json
import os
import platform
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT), str(ROOT / "benchmarks")]

os.environ["OMP_NUM_THREADS"] = "1"  # threads of torch would wait for each other on a busy machine

import numpy as np  # noqa: E402
import torch  # noqa: E402
from commits import commit_of  # noqa: E402
from tests.tiny import WORDS, documents, save_encoder  # noqa: E402

import treetop  # noqa: E402
from treetop.cli.main import app  # noqa: E402
from treetop.cli.running import run_app  # noqa: E402
from treetop.kernels import common_kernels  # noqa: E402
from treetop.kernels.warming import warm_up  # noqa: E402
from treetop.training.finetune import trainer  # noqa: E402

# Files of a user, some with names like those of temporaries.
MINE = (
    "notes.txt",
    ".notes.part",
    "model.txt",
    ".model.lock.txt",
    "model.run.txt",
    ".out.csv.part.bak",
)
# What differs from run to run: how long steps took.
TIMED = ("history.jsonl",)
# Where time and memory went: not a part of the model.
RECORD = "training.json"
TINY = {
    "max_length": 16,
    "batch": 16,
    "budget": "16/24 steps",
    "first_tree": "6-L",
    "trees": 2,
    "checkpoint_minutes": 1e-9,
}
SETTINGS = [f"--set={name}={value}" for name, value in TINY.items()]
MOST_IN_A_ROW = 3


@dataclass(frozen=True)
class Scenario:
    """Something to kill."""

    name: str
    begin: Callable[[Path, Path], None]  # prepares a folder; the second one is that of `prepared`
    run: Callable[[Path], None]  # in a forked process
    written: tuple[str, ...]  # what remains in the end, besides the files of the user


def treetop_command(*arguments: object) -> None:
    """Run a command; raises if it fails."""
    code = run_app(app, [str(argument) for argument in arguments], "treetop")
    if code:
        raise SystemExit(code)


def prepared(folder: Path) -> None:
    """Make the inputs of all scenarios: data, an encoder and models."""
    texts, labels = documents(96)
    lines = [json.dumps({"text": t, "labels": names}) for t, names in zip(texts, labels, strict=True)]
    (folder / "data.jsonl").write_text("\n".join(lines) + "\n")
    save_encoder(folder / "encoder")
    for name, chosen in (("old", labels), ("new", [[f"new {one}" for one in row] for row in labels])):
        treetop.XRLinear(threads=2).fit(texts * 8, chosen * 8).save(folder / name)


def nothing(_: Path, __: Path) -> None:
    """Begin with an empty folder."""


def with_model(folder: Path, inputs: Path) -> None:
    """Begin with an older model, which is to be replaced."""
    shutil.copytree(inputs / "old", folder / "model")


def scenarios(inputs: Path) -> list[Scenario]:
    """All scenarios."""
    data, encoder = inputs / "data.jsonl", inputs / "encoder"
    transformer = ["--model", "xr-transformer", "--encoder", encoder, *SETTINGS]

    def train(folder: Path) -> None:
        treetop_command("train", data, "-o", folder / "model", "--set", "threads=2")

    def fine_tune(folder: Path) -> None:
        option = ["--resume"] if (folder / "model.run").exists() else []
        treetop_command("train", data, "-o", folder / "model", *transformer, *option)

    def start_again(folder: Path) -> None:
        treetop_command("train", data, "-o", folder / "model", *transformer, "--overwrite")

    def save(folder: Path) -> None:
        models = [treetop.load(inputs / name) for name in ("new", "old")]
        for number in range(9):
            models[number % 2].save(folder / "model")

    def convert_to_file(folder: Path) -> None:
        if not (folder / "out.csv").exists():
            treetop_command("data", "convert", data, folder / "out.csv")

    def convert_to_folder(folder: Path) -> None:
        if not (folder / "out").exists():
            treetop_command("data", "convert", data, folder / "out", "--to", "pecos")

    def compress(folder: Path) -> None:
        treetop_command("compress", inputs / "new", "-o", folder / "model")

    def keep(folder: Path) -> None:
        treetop_command("evaluate", folder / "model", data, "--keep", "--allow-training-data")

    def predict(folder: Path) -> None:
        treetop_command("predict", inputs / "new", data, "-o", folder / "out.jsonl")

    fine_tuned = ("model", "model.run")
    return [
        Scenario("train", nothing, train, ("model",)),
        Scenario("train again", with_model, train, ("model",)),
        Scenario("fine-tune and resume", nothing, fine_tune, fine_tuned),
        Scenario("fine-tune, start again", nothing, start_again, fine_tuned),
        Scenario("save over a model", with_model, save, ("model",)),
        Scenario("convert to a file", nothing, convert_to_file, ("out.csv",)),
        Scenario("convert to a folder", nothing, convert_to_folder, ("out",)),
        Scenario("compress", with_model, compress, ("model",)),
        Scenario("save metrics", with_model, keep, ("model",)),
        Scenario("predict to a file", nothing, predict, ("out.jsonl",)),
        Scenario("serve", with_model, serve, ("feedback.jsonl", "model")),
    ]


def serve(folder: Path) -> None:
    """Serve over a Unix socket, answer texts, take feedback and reload the model; then stop."""
    import httpx

    server = os.fork()
    if server == 0:
        code = run_app(
            app,
            ["serve", str(folder / "model"), "--uds", str(folder / "socket"), "--workers", "2"]
            + ["--feedback", str(folder / "feedback.jsonl")],
            "treetop",
        )
        os._exit(code)
    try:
        transport = httpx.HTTPTransport(uds=str(folder / "socket"))
        with httpx.Client(transport=transport, base_url="http://localhost", timeout=30) as client:
            until = time.monotonic() + 60
            while time.monotonic() < until:
                with suppress(httpx.HTTPError):
                    if client.get("/readyz").status_code == 200:
                        break
                time.sleep(0.02)
            expected = treetop.load(folder / "model").predict([WORDS[0]], 3)[0]
            for number in range(5):
                got = client.post("/v1/predict", json={"text": WORDS[0], "k": 3}).raise_for_status()
                labels = [one["label"] for one in got.json()["results"][0]["labels"]]
                assert labels == [label for label, _ in expected]
                body = {"text": WORDS[number], "labels": labels[:1]}
                client.post("/v1/feedback", json=body).raise_for_status()
    finally:
        os.kill(server, signal.SIGTERM)
    _, status = os.waitpid(server, 0)
    assert os.waitstatus_to_exitcode(status) == 0, status
    lines = (folder / "feedback.jsonl").read_text().splitlines()
    assert all(json.loads(line)["text"] for line in lines)  # no half lines
    (folder / "feedback.jsonl").write_text("")  # how many there are depends on the kills


class Runs:
    """Runs of scenarios in forked processes."""

    def __init__(self, work: Path, seed: int) -> None:
        self.work, self.chosen = work, random.Random(seed)
        self.inputs, self.spare = work / "inputs", work / "tmp"
        self.inputs.mkdir()
        self.spare.mkdir()
        tempfile.tempdir = os.environ["TMPDIR"] = str(self.spare)

    def forked(self, run: Callable[[], None], seconds: float | None = None) -> int | None:
        """Run in a process group of its own; kill it after some seconds. Returns its exit code."""
        sys.stdout.flush()
        process = os.fork()
        if process == 0:
            code = 1
            os.setsid()
            try:
                with (
                    (self.work / "log").open("a") as log,
                    redirect_stdout(log),
                    redirect_stderr(log),
                ):
                    try:
                        run()
                        code = 0
                    except BaseException as error:
                        import traceback

                        traceback.print_exc()
                        code = error.code if isinstance(error, SystemExit) else 1
            finally:
                os._exit(code)
        if seconds is not None:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                if (code := ended(process)) is not None:
                    return code
                time.sleep(0.002)
            with suppress(ProcessLookupError):  # it has no group yet
                os.killpg(process, signal.SIGKILL)
            os.kill(process, signal.SIGKILL)
        _, status = os.waitpid(process, 0)
        wait_for_group(process)
        return os.waitstatus_to_exitcode(status)

    def undisturbed(self, scenario: Scenario) -> tuple[dict[str, str], float]:
        """What a run leaves that nobody disturbs, and the seconds that it takes."""
        folder = self.fresh(scenario)
        started = time.monotonic()
        code = self.forked(lambda: scenario.run(folder))
        assert code == 0, f"{scenario.name}: {(self.work / 'log').read_text()[-4000:]}"
        return contents(folder), time.monotonic() - started

    def fresh(self, scenario: Scenario) -> Path:
        """A new folder with the files of a user. It has the same path every time."""
        folder = self.work / "place"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        scenario.begin(folder, self.inputs)
        for name in MINE:
            (folder / name).write_text(f"mine: {name}")
        return folder

    def round(
        self, scenario: Scenario, expected: dict[str, str], seconds: float, most: int
    ) -> tuple[int, list[str]]:
        """Kill runs in a row and complete the last; return how many, and what was wrong."""
        folder, kills = self.fresh(scenario), 0
        for _ in range(self.chosen.randint(1, min(MOST_IN_A_ROW, most))):
            code = self.forked(lambda: scenario.run(folder), self.chosen.uniform(0, 1.05 * seconds))
            if code == -signal.SIGKILL:
                kills += 1
            elif code:
                return kills, [f"a run after {kills} kills failed with exit code {code}"]
        code = self.forked(lambda: scenario.run(folder))
        if code:
            return kills, [f"the run after {kills} kills failed with exit code {code}"]
        return kills, faults(contents(folder), expected) + [
            f"left in the folder for temporary files: {path.name}" for path in self.spare.iterdir()
        ]


def ended(process: int) -> int | None:
    """The exit code of a child process if it has ended."""
    found, status = os.waitpid(process, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if found else None


def wait_for_group(group: int) -> None:
    """Wait until no process of a group is left that has not been reaped."""
    with suppress(ProcessLookupError):
        for _ in range(2000):
            os.killpg(group, 0)
            time.sleep(0.002)


def contents(folder: Path) -> dict[str, str]:
    """What is in a folder: digests of files by their names."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if RECORD in path.name:
            continue  # of the machine, written after the model; or a part of it
        if path.is_dir():
            found[name] = "folder"
        elif path.name == "config.json" and "files" in (config := json.loads(path.read_text())):
            for timed in TIMED:
                config["files"].pop(timed, None)
            found[name] = digest(json.dumps(config).encode())
        elif path.name in TIMED:
            found[name] = "times"
        else:
            found[name] = digest(path.read_bytes())
    return found


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def faults(found: dict[str, str], expected: dict[str, str]) -> list[str]:
    """What differs from the undisturbed run."""
    names = sorted(set(found) | set(expected))
    words = {True: "is left", False: "differs"}
    return [
        f"{name}: {'is missing' if name not in found else words[name not in expected]}"
        for name in names
        if found.get(name) != expected.get(name)
    ]


def measure(kills: int, seed: int, only: list[str] | None, keep: Callable[[dict], None]) -> dict:
    """Run all scenarios in turn until there were enough kills; return the counts.

    `keep` is called with the counts so far after each turn.
    """
    results: dict = {}
    with tempfile.TemporaryDirectory() as place:
        runs = Runs(Path(place), seed)
        trainer.STEPS_BETWEEN_FIGURES = 3  # and with them checkpoints
        code = runs.forked(lambda: prepared(runs.inputs))
        assert code == 0, (Path(place) / "log").read_text()
        chosen = [one for one in scenarios(runs.inputs) if only is None or one.name in only]
        references = {one.name: runs.undisturbed(one) for one in chosen}
        for scenario in chosen:
            again, seconds = runs.undisturbed(scenario)
            assert again == references[scenario.name][0], faults(again, references[scenario.name][0])
            references[scenario.name] = again, seconds
            print(f"{scenario.name}: {seconds:.2f} s", file=sys.stderr, flush=True)
            results[scenario.name] = {"kills": 0, "completed": 0, "faults": []}
        total = 0
        while total < kills:
            for scenario in chosen:
                done, wrong = runs.round(scenario, *references[scenario.name], kills - total)
                row = results[scenario.name]
                row["kills"] += done
                row["completed"] += not wrong
                row["faults"] += wrong
                total += done
                if wrong:
                    log = (runs.work / "log").read_text()[-4000:]
                    print(f"{log}\n{scenario.name}: {wrong}", file=sys.stderr, flush=True)
                if total >= kills:
                    break
            print(f"{total} kills", file=sys.stderr, flush=True)
            keep(results)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", action="append", help="a scenario, by its name; may be repeated")
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args()
    warm_up(common_kernels())
    facts = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "versions": {
            "treetop": treetop.__version__,
            "numpy": np.__version__,
            "torch": torch.__version__,
        },
        "commit": commit_of(ROOT),
        "seed": given.seed,
    }

    def keep(rows: dict) -> None:
        sums = {name: sum(row[name] for row in rows.values()) for name in ("kills", "completed")}
        faults = sum(len(row["faults"]) for row in rows.values())
        results = {**facts, **sums, "faults": faults, "scenarios": rows}
        if given.output:
            given.output.write_text(json.dumps(results, indent=2) + "\n")

    print(json.dumps(measure(given.kills, given.seed, given.only, keep), indent=2))


if __name__ == "__main__":
    main()
