"""Trains treetop, libpecos and omikuji on generated problems with up to millions of labels.

    python benchmarks/scale.py WORK --problem amazon-670k --sides treetop libpecos omikuji \
        --python libpecos=peers/bin/python --python omikuji=peers/bin/python
    python benchmarks/scale.py WORK --problem amazon-670k --labels 100000 --sides treetop libpecos
    python benchmarks/scale.py WORK --problem amazon-3m --sides "treetop, texts" --memory 12GB
    python benchmarks/scale.py WORK --problem wiki-500k --sides "text features" --memory 8GB
    python benchmarks/scale.py --merge FILE…

Each problem is generated once in a folder of WORK, with texts, labels and the matrices that all
libraries train on. Each run has a process of its own, in the environment of its library. Its row is
added to benchmarks/results/scale.json (or `--results`) when it is finished, and not repeated: an
interrupted benchmark continues. `--labels` scales a problem, with its documents. `--repeats` runs take
turns. `--merge` adds the rows of other files, such as those measured on another machine.
"""

import argparse
import json
import os
import platform
import shutil
import sys
from pathlib import Path

from commits import commit_of
from generated import COUNTS, FUNCTION_WORDS, Counts, generate, spelled
from linear import evaluated, machine, run_worker, versions, write_xmlrepo

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "scale.json"
LIMIT_SECONDS = 4 * 3600
MEASURES = ("P@1", "P@3", "P@5")
# By side: worker, stages, options. Those of texts need no matrices.
SIDES: dict[str, tuple[str, tuple[str, ...], dict]] = {
    "treetop": ("treetop_scale", ("matrix", "predict"), {"trees": 1, "texts": False}),
    "treetop, three trees": ("treetop_scale", ("matrix", "predict"), {"trees": 3, "texts": False}),
    "libpecos": ("libpecos", ("linear", "predict"), {}),
    "omikuji": ("omikuji", ("default",), {}),
    "treetop, texts": ("treetop_scale", ("texts", "predict"), {"trees": 1, "texts": True}),
    "text features": ("treetop_scale", ("text_features",), {"trees": 1}),
}
LIBRARIES = {"treetop_scale": "treetop"}


def name_of(side: str) -> str:
    """The name of a side's model and predictions."""
    return side if side in ("libpecos", "omikuji") else side.replace(", ", "-").replace(" ", "-")


def prepare(name: str, folder: Path, labels: int | None, sides: list[str], pythons: dict) -> Counts:
    """Generate a problem, and the features that its sides train on."""
    counts = generate(name, folder, labels, len(os.sched_getaffinity(0)))
    from_matrices = [side for side in sides if "text" not in side]
    if from_matrices and not (folder / "X.tst.npz").exists():
        words = [word.decode().strip() for word in spelled(FUNCTION_WORDS)]
        result = run_worker(
            pythons["treetop"], "treetop_scale", "features", folder, {"stop_words": words}
        )
        if "failed" in result:
            raise SystemExit(f"features of {folder}: {result['failed']}")
    if "omikuji" in sides and not (folder / "X.trn.txt").exists():
        from workers.common import load

        write_xmlrepo(folder / "X.trn.txt", load(folder, "X.trn"), load(folder, "Y.trn"))
    return counts


def folder_bytes(folder: Path) -> int:
    """The size of a folder in bytes."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def measured(
    side: str, folder: Path, counts: Counts, memory: str | None, pythons: dict, log: Path | None
) -> dict:
    """Train and predict; one row of results."""
    worker, stages, options = SIDES[side]
    library, name = LIBRARIES.get(worker, worker), name_of(side)
    options = {**options, "name": f"{name}.model", "labels": counts.labels, "memory": memory}
    row: dict = {"memory": memory, "others": others_before()}
    for stage in stages:
        result = run_worker(pythons[library], worker, stage, folder, options, LIMIT_SECONDS, log)
        if "failed" in result:
            return {**row, "failed": f"{stage}: {result['failed']}"}
        row[stage] = result
    model = folder / f"{name}.model"
    if model.is_dir():
        row["folder_bytes"] = folder_bytes(model)
    predictions = f"{name}.model" if worker == "treetop_scale" else name
    if (folder / f"predictions.{predictions}.npz").exists():
        quality = evaluated(folder, predictions)
        row["quality"] = {measure: round(100 * quality[measure], 2) for measure in MEASURES}
        (folder / f"predictions.{predictions}.npz").unlink()
    if model.is_dir():
        shutil.rmtree(model)
    return row


def others_before() -> float:
    """Processes that other work kept running in the last minute."""
    return round(os.getloadavg()[0], 1)


def merge(results: dict, others: dict) -> None:
    """Add the runs of other results that are not known yet."""
    for problem, found in others.items():
        own = results.setdefault(problem, {**found, "runs": {}})
        for side, runs in found["runs"].items():
            known = own["runs"].setdefault(side, [])
            known += [run for run in runs if run not in known]


def read_results(path: Path) -> dict:
    """The results so far."""
    return json.loads(path.read_text("utf-8")) if path.exists() else {}


def write_results(path: Path, results: dict) -> None:
    """Write all results; a kill leaves the old ones or the new ones."""
    path.parent.mkdir(exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    part.replace(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=Path, nargs="?", default=Path("bench-data"))
    parser.add_argument("--problem", choices=COUNTS, default="amazon-670k")
    parser.add_argument("--labels", type=int)
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=["treetop", "libpecos"])
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--memory", help="limit of treetop's training, such as 12GB")
    parser.add_argument("--python", action="append", default=[], metavar="LIBRARY=INTERPRETER")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--commit", help="the commit that is measured, where git does not know it")
    parser.add_argument("--log", type=Path, help="a file for what runs say, such as their stages")
    parser.add_argument("--merge", nargs="+", type=Path)
    parser.add_argument("--prepare", action="store_true", help="generate the problem only")
    given = parser.parse_args()
    results = read_results(given.results)
    if given.merge:
        for path in given.merge:
            merge(results, read_results(path))
        write_results(given.results, results)
        return
    pythons = {"treetop": sys.executable, **dict(item.split("=", 1) for item in given.python)}
    commit = given.commit or commit_of(HERE.parent)
    title = given.problem if given.labels is None else f"{given.problem}, {given.labels} labels"
    folder = given.work / title.replace(", ", "-").replace(" ", "-")
    counts = prepare(given.problem, folder, given.labels, given.sides, pythons)
    if given.prepare:
        return
    facts = {"problem": given.problem, "labels": counts.labels, "documents": counts.documents}
    results.setdefault(title, {**facts, "runs": {}})
    about = {**machine(), "versions": versions(pythons), "threads": 2, "seed": 0, "commit": commit}
    for repeat in range(given.repeats):
        for side in given.sides:
            runs = results[title]["runs"].setdefault(side, [])
            if len([run for run in runs if run["commit"] == commit]) > repeat:
                continue
            row = {**about, **measured(side, folder, counts, given.memory, pythons, given.log)}
            print(title, side, json.dumps(row), flush=True)
            runs.append({**row, "python": platform.python_version()})
            write_results(given.results, results)


if __name__ == "__main__":
    main()
