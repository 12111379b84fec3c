"""Trains the same reduced recipe with PECOS's own XR-Transformer and with treetop, side by side.

    python benchmarks/side_by_side.py DATA --recipe FOLDER/eurlex-4k-bert.json --encoder FOLDER \
        --steps 100/100/100 --max-length 32 --python libpecos=peers/bin/python

The official `params.json` is reduced to a size that two cores can train: another encoder, fewer steps,
shorter inputs. Both sides get the reduced file, the same texts, labels and TF-IDF features, the same
seeds and number of threads; each runs in a process of its own, in its own environment, in turn. A
third side is treetop with its own defaults, which gets the texts and labels alone, and the same
encoder, input length and number of training samples.

Results are added to benchmarks/results/side_by_side.json; finished runs are not repeated.
`--only SIDE` runs one side; `--seeds` continues with further seeds. Steps and parts have their wall
time and their CPU time, which on a single thread (the default) does not depend on what else runs.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from commits import commit_of
from linear import evaluated

from treetop.data import Split, open_data
from treetop.features.words.tfidf import fit_tfidf
from treetop.interop.pecos_params import leaves, read_params
from treetop.labels.vocabulary import vocabulary_of
from treetop.settings.auto import first_sizes
from treetop.settings.notation import tree_sizes
from treetop.settings.parts import Analyser

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "side_by_side.json"
DEFAULTS = "treetop, its defaults"
SIDES = ("libpecos", "treetop, the recipe", DEFAULTS)
INDEXERS = ("preliminary_indexer_params", "refined_indexer_params")
CHAINS = ("neg_mining_chain", "model_chain")
MEASURES = ("P@1", "P@3", "P@5", "PSP@5")
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def sample(split: Split, count: int | None) -> Split:
    """Return as many documents of a split, drawn at random; None for all."""
    if count is None or count >= len(split.texts):
        return Split(list(split.texts), list(split.labels))
    rows = np.sort(np.random.default_rng(0).permutation(len(split.texts))[:count])
    texts, labels = list(split.texts), list(split.labels)
    return Split([texts[row] for row in rows], [labels[row] for row in rows])


def prepare(source: Path, folder: Path, documents: int | None) -> None:
    """Write texts, labels and TF-IDF features (words and pairs of words) of a data set."""
    if (folder / "ready").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    data = open_data(source)
    train, test = sample(data.split("train"), documents), sample(data.split("test"), documents)
    vocabulary = vocabulary_of(train.labels)
    sp.save_npz(folder / "Y.trn.npz", vocabulary.encode(train.labels))
    sp.save_npz(folder / "Y.tst.npz", vocabulary.extended(test.labels).encode(test.labels))
    tfidf, X = fit_tfidf([Analyser(ngrams=(1, 2), max_features=500_000)], train.texts)
    sp.save_npz(folder / "X.trn.npz", X)
    sp.save_npz(folder / "X.tst.npz", tfidf.transform(test.texts))
    for name, split in (("train", train), ("test", test)):
        (folder / f"{name}.txt").write_text("".join(f"{text}\n" for text in split.texts), "utf-8")
    (folder / "ready").touch()


def small_encoder(source: Path, target: Path, layers: int | None) -> None:
    """Copy an encoder in float32, with its first layers only."""
    from safetensors.numpy import load_file, save_file

    target.mkdir(parents=True, exist_ok=True)
    for path in source.iterdir():
        if path.suffix in (".json", ".txt"):
            shutil.copyfile(path, target / path.name)
    config = json.loads((source / "config.json").read_text())
    config["num_hidden_layers"] = layers = layers or config["num_hidden_layers"]
    config |= {"dtype": "float32", "torch_dtype": "float32"}
    (target / "config.json").write_text(json.dumps(config, indent=1))
    weights = {
        name: values.astype("float32") if values.dtype.kind == "f" else values
        for name, values in load_file(source / "model.safetensors").items()
        if not name.startswith("encoder.layer.") or int(name.split(".")[2]) < layers
    }
    save_file(weights, target / "model.safetensors", metadata={"format": "pt"})


def fitted(chain: list, levels: int) -> list:
    """Give a chain, a list with an entry per level, as many entries as the tree has levels.

    The last levels keep theirs: it is the last one that differs in the recipes.
    """
    return chain[-levels:] if levels <= len(chain) else chain[:1] * (levels - len(chain)) + chain


def reduced(recipe: Path, labels: int, encoder: Path, given: argparse.Namespace) -> dict:
    """Return the params.json of a recipe, reduced to the size that is given."""
    params, settings = json.loads(recipe.read_text()), read_params(recipe).settings
    _, levels = first_sizes(settings["first_tree"], labels, settings["largest_level"])
    depth = len(tree_sizes(settings["tree"], labels)) + 1
    train, predict = params["train_params"], params["pred_params"]
    for part in (train, predict):
        part["matcher_params_chain"] = fitted(part["matcher_params_chain"], levels)
        linear = part["ranker_params"]["hlm_args"]
        linear |= {name: fitted(linear[name], depth) for name in CHAINS if name in linear}
    for level, steps in zip(train["matcher_params_chain"], given.steps, strict=True):
        level["warmup_steps"] = round(level["warmup_steps"] * steps / level["max_steps"])
        # PECOS goes on from the last checkpoint: without one at the last step, it would lose steps.
        level |= {"max_steps": steps, "save_steps": steps, "batch_size": given.batch}
        level |= {"model_shortcut": str(encoder), "learning_rate": given.learning_rate}
        level |= {"batch_gen_workers": given.workers, "use_gpu": False}
    for level in train["ranker_params"]["hlm_args"]["model_chain"]:
        level["threads"] = given.threads
    for name in INDEXERS:
        train[name]["threads"] = given.threads
    for level in predict["matcher_params_chain"]:
        level["truncate_length"] = given.max_length
    return params


def changes(recipe: Path, params: dict) -> dict[str, list]:
    """Return what was replaced in a recipe: the old and the new values by key."""
    old, new = (dict(leaves(content, ())) for content in (json.loads(recipe.read_text()), params))
    return {
        ".".join(names): [list(old.get(names, ())), list(values)]
        for names, values in new.items()
        if old.get(names) != values and names[-1] != "model_shortcut"
    }


def with_seed(params: dict, seed: int) -> dict:
    """Return the params.json of a seed, which is part of the trees' settings."""
    params = json.loads(json.dumps(params))
    for name in INDEXERS:
        params["train_params"][name]["seed"] = seed
    return params


def default_settings(given: argparse.Namespace, encoder: Path, seed: int) -> dict:
    """Return treetop's defaults, with the encoder, the input length and the samples of the recipe."""
    samples = sum(given.steps) * given.batch
    own = {"encoder": str(encoder), "max_length": given.max_length, "seed": seed}
    return {**own, "budget": f"{samples} samples"}


class TreeMemory:
    """Samples the peak memory of a process and its descendants, in GB.

    Memory that several processes share counts once (PSS).
    """

    def __init__(self, process: int) -> None:
        self.process, self.peak, self.stop = process, 0.0, threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()

    def watch(self) -> None:
        while not self.stop.wait(0.5):
            self.peak = max(self.peak, sum(map(memory_of, descendants(self.process))) / 1e6)


def descendants(process: int) -> list[int]:
    """Return a process and all processes that it started."""
    try:
        tasks = list(Path(f"/proc/{process}/task").iterdir())
        children = [int(n) for task in tasks for n in (task / "children").read_text().split()]
    except OSError:
        return []
    return [process, *(one for child in children for one in descendants(child))]


def memory_of(process: int) -> int:
    """Return the proportional set size of a process in kB; 0 if it has ended."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def machine_seconds() -> float:
    """Return the seconds that all cores together have been busy since the machine started."""
    user, nice, system, *_ = map(int, Path("/proc/stat").read_text().split()[1:5])
    return (user + nice + system) / os.sysconf("SC_CLK_TCK")


def own_seconds() -> float:
    """Return the seconds that this process and those that it started and waited for were busy."""
    return sum(os.times()[:4])


def run_worker(python: str, worker: str, folder: Path, options: dict) -> dict:
    """Train and predict in an environment of its own; return what the worker measured."""
    script = HERE / "workers" / f"{worker}_transformer_worker.py"
    command = [python, str(script), "train", str(folder), json.dumps(options)]
    threads = dict.fromkeys(THREADS, str(options["threads"]))
    offline = {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "true"}
    log = folder / f"{options['name']}.log"
    started, busy = time.perf_counter(), machine_seconds() - own_seconds()
    with log.open("w") as errors:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, env={**os.environ, **threads, **offline}
        )
        with TreeMemory(process.pid) as memory:
            output, _ = process.communicate()
    wall = time.perf_counter() - started
    others = (machine_seconds() - own_seconds() - busy) / wall
    lines = [line for line in output.decode().splitlines() if line.startswith("RESULT ")]
    if process.returncode or not lines:
        raise SystemExit(f"{worker} failed: see {log}\n{log.read_text()[-2000:]}")
    measured = json.loads(lines[-1].removeprefix("RESULT "))
    return {**measured, "wall": wall, "peak_gb": memory.peak, "cores_of_others": round(others, 3)}


def quality(folder: Path, name: str) -> dict[str, float]:
    """Return the metrics of a run's predictions on the test documents, in percent."""
    result = evaluated(folder, name)
    return {name: round(100 * result[name], 3) for name in MEASURES}


def run(side: str, seed: int, folder: Path, params: dict, encoder: Path, given) -> dict:
    """Run one side with one seed."""
    worker = side.partition(",")[0]
    name = f"{side.replace(', ', '-').replace(' ', '-')}-{seed}"
    options = {"name": name, "seed": seed, "threads": given.threads, "workers": given.workers}
    path = folder / f"params-{seed}.json"
    path.write_text(json.dumps(with_seed(params, seed), indent=1))
    options["params"] = None if side == DEFAULTS else path.name
    options["settings"] = default_settings(given, encoder, seed)
    measured = run_worker(given.python[worker], worker, folder, options)
    outside = [sum(taken) for taken in zip(*measured["parts"].values(), strict=True)]
    return {**measured, "outside": outside, "metrics": quality(folder, name)}


def versions(python: str, packages: tuple[str, ...]) -> dict[str, str]:
    """Return the versions of packages in an environment."""
    code = "import importlib.metadata as m, sys\nfor p in sys.argv[1:]: print(m.version(p))"
    done = subprocess.run([python, "-c", code, *packages], capture_output=True, text=True, check=True)
    return dict(zip(packages, done.stdout.split(), strict=True))


def facts(given: argparse.Namespace) -> dict:
    """Return the machine and the versions of both environments."""
    common = ("torch", "transformers", "numpy", "scipy")
    made = {
        "machine": f"{platform.machine()}, {len(os.sched_getaffinity(0))} cores",
        "threads": given.threads,
        "treetop": {"python": platform.python_version(), **versions(given.python["treetop"], common)},
        "commit": commit_of(HERE.parent),
    }
    if "libpecos" in given.python:
        made["libpecos"] = versions(given.python["libpecos"], ("libpecos", *common))
    return made


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("--recipe", type=Path, required=True, help="a params.json of PECOS")
    parser.add_argument("--encoder", type=Path, required=True, help="folder of a BERT")
    parser.add_argument("--documents", type=int, help="use a sample of at most so many")
    parser.add_argument("--layers", type=int, help="use only the first layers of the encoder")
    parser.add_argument("--steps", required=True, help="of each level, such as 100/100/100")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--learning-rate", type=float, default=5e-5)
    parser.add_argument("--max-length", type=int, default=128)
    parser.add_argument("--workers", type=int, default=1, help="of libpecos's data loader")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", action="append", choices=SIDES)
    parser.add_argument("--python", action="append", default=[], help="SIDE=PATH of an interpreter")
    parser.add_argument("--work", type=Path, default=Path("bench-data"))
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    given.steps = [int(figure) for figure in given.steps.split("/")]
    given.python = {"treetop": sys.executable, **dict(pair.split("=") for pair in given.python)}
    given.work = given.work.resolve()
    return given


def save(path: Path, content: dict) -> None:
    part = path.with_suffix(".part")
    part.write_text(json.dumps(content, indent=1) + "\n")
    part.replace(path)


def main() -> None:
    given = arguments()
    folder, encoder = given.work / given.data.name, given.work / "encoder"
    prepare(given.data, folder, given.documents)
    small_encoder(given.encoder, encoder, given.layers)
    Y = sp.load_npz(folder / "Y.trn.npz")
    params = reduced(given.recipe, Y.shape[1], encoder, given)
    content = json.loads(given.out.read_text()) if given.out.is_file() else {}
    result = content.setdefault(given.data.name, {})
    result |= {
        "recipe": given.recipe.stem,
        "changes": changes(given.recipe, params),
        "encoder": {"name": given.encoder.name, "layers": given.layers},
        "documents": Y.shape[0],
        "sample": given.documents,  # None: all documents
        "labels": Y.shape[1],
    }
    for seed in given.seeds:
        for side in given.only or SIDES:
            if side.partition(",")[0] not in given.python:
                continue
            runs = result.setdefault("runs", {}).setdefault(side, {})
            if str(seed) in runs:
                continue
            runs[str(seed)] = {**run(side, seed, folder, params, encoder, given), **facts(given)}
            print(given.data.name, side, seed, json.dumps(runs[str(seed)]), flush=True)
            save(given.out, content)


if __name__ == "__main__":
    main()
