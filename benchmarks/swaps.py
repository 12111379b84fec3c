"""Loads a model again and again while another process keeps replacing it by another; none may be mixed.

    python benchmarks/swaps.py --loads 10000 -o benchmarks/results/swaps.json

There are two models with other labels, features, weights and encoders. Each load predicts, and opens
its encoder only then, often after the folder has been replaced. A load is right if every text gets
the labels and the scores of one of the two models, or if an error of one line says that the folder
was replaced before its encoder was opened.
"""

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks")]

import numpy as np  # noqa: E402
from commits import commit_of  # noqa: E402

import treetop  # noqa: E402
from treetop.errors import TreetopError  # noqa: E402
from treetop.runtime.files import exchange  # noqa: E402

WORDS = ["red", "green", "blue", "apple", "pear", "cherry", "grass", "sky", "sea", "fire", "tree"]
TEXTS = [f"{a} {b}" for a, b in zip(WORDS, WORDS[1:], strict=False)]
MARKS = "one", "two"
EXCHANGES = 20  # per save; an even number, so that the next save replaces the other model
GONE = "was replaced or moved since the model was loaded"


def two_models(folder: Path) -> list[Path]:
    """Train the two models: with word vectors as encoder, and features of their words."""
    folders = []
    for seed, mark in enumerate(MARKS):
        vectors = np.random.default_rng(seed).standard_normal((len(WORDS), 8 + 4 * seed))
        rows = [f"{word} {' '.join(map(str, row))}" for word, row in zip(WORDS, vectors, strict=True)]
        source = folder / f"{mark}.vec"
        source.write_text(f"{len(WORDS)} {vectors.shape[1]}\n" + "\n".join(rows) + "\n")
        labels = [[f"{mark} {word}" for word in text.split()[: seed + 1]] for text in TEXTS]
        model = treetop.XRTransformer(encoder=str(source), fine_tune=False, trees=1 + seed, threads=1)
        model.fit(TEXTS * 3, labels * 3).save(folder / mark)
        folders.append(folder / mark)
    return folders


def swap_until(stop: Path, sources: list[Path], target: Path) -> int:
    """Put one model in the place of the other until the file `stop` exists; return how often.

    Each save, which deletes the files of the other model, is followed by exchanges of two folders.
    """
    models = [treetop.load(source) for source in sources]
    other = target.with_name("other")
    models[1].save(other)
    count = 0
    while not stop.exists():
        models[count % 2].save(target)
        for _ in range(EXCHANGES):
            exchange(target, other)
            time.sleep(0.0005)
        count += 1 + EXCHANGES
    return count


def answers(model, pause: float) -> list:
    """Predictions of a model; the encoder is opened after a pause."""
    time.sleep(pause)
    return [list(row) for row in model.predict(TEXTS, 3, threads=1)]


def kind_of_load(target: Path, expected: list, pause: float) -> str:
    """What a load gives: one of the models, an error, or a mixture."""
    try:
        model = treetop.load(target)
    except TreetopError as error:
        return f"error in loading: {error}"
    try:
        got = answers(model, pause)
    except TreetopError as error:
        return "replaced before its encoder was opened" if GONE in str(error) else f"error: {error}"
    mark = model.classes_[0].split()[0]
    return mark if mark in MARKS and got == expected[MARKS.index(mark)] else "mixed"


def measure(loads: int, seed: int, threads: int = 2) -> dict:
    """Load so often; return how often each kind of result occurred, and the number of swaps."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        sources, target, stop = two_models(folder), folder / "model", folder / "stop"
        expected = [answers(treetop.load(source), 0) for source in sources]
        treetop.load(sources[0]).save(target)
        reader, writer = os.pipe()
        process = os.fork()
        if process == 0:
            try:
                os.write(writer, str(swap_until(stop, sources, target)).encode())
            finally:
                os._exit(0)
        pauses = np.random.default_rng(seed).choice([0, 0, 0.001, 0.01], loads).tolist()
        try:
            with ThreadPoolExecutor(threads) as pool:
                kinds = Counter(pool.map(lambda pause: kind_of_load(target, expected, pause), pauses))
        finally:
            stop.touch()
            os.waitpid(process, 0)
        left = sorted(path.name for path in folder.iterdir())
        named = sorted(["model", "other", "stop", *MARKS, *(f"{mark}.vec" for mark in MARKS)])
        return {
            "loads": loads,
            "swaps": int(os.read(reader, 100)),
            "mixed": kinds.pop("mixed", 0),
            "results": dict(sorted(kinds.items())),
            "left behind": [name for name in left if name not in named],
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--loads", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args()
    results = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "versions": {"treetop": treetop.__version__, "numpy": np.__version__},
        "commit": commit_of(ROOT),
        "seed": given.seed,
        **measure(given.loads, given.seed),
    }
    print(json.dumps(results, indent=2))
    if given.output:
        given.output.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
