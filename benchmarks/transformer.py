"""Measures XRTransformer on a data set: training, prediction, quality and memory, as JSON.

    python benchmarks/transformer.py DATA --encoder FOLDER --split dev --out results.json \
        --set budget="300/400/600 steps" [--variant name:key=value,key=value …] [--run FOLDER]

`--variant` may be repeated: each variant is trained with its own settings. With `--run`, variants share
the stages that their settings do not affect, and the times are those of the stages that ran. Settings
are chosen on the split dev; `benchmarks/held_out.py` then measures the chosen models on the split test.
"""

import argparse
import json
import platform
import resource
import sys
import threading
import time
from pathlib import Path

import numpy as np

import treetop
from treetop import metrics
from treetop.data import Split, open_data
from treetop.kernels import common_kernels
from treetop.kernels.warming import warm_up
from treetop.labels.alignment import align
from treetop.runtime.progress import TimedReporter
from treetop.settings.notation import parse_assignment

SHOWN = ("P@1", "P@3", "P@5", "RP@5", "nDCG@5", "micro_f1@5")


class PeakMemory:
    """Samples the peak resident memory of this process within a with statement, in GB."""

    def __enter__(self):
        self.peak, self.stop = 0.0, threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()
        return self

    def _watch(self):
        page = resource.getpagesize()
        while not self.stop.wait(0.05):
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            self.peak = max(self.peak, pages * page / 1e9)

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()


def versions():
    import torch
    import transformers

    gpu = torch.cuda.is_available()
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "numpy": np.__version__,
        "treetop": treetop.__version__,
        "cores": len(__import__("os").sched_getaffinity(0)),
        "gpu": torch.cuda.get_device_name() if gpu else None,
    }


def truth(model, split):
    """Return the labels of a split as a matrix; those unknown to the model come last."""
    return align(split.labels, model.classes_)


def measure(model, split, k=(1, 3, 5, 10), scores=None):
    scores = model.predict_scores(split.documents, max(k)) if scores is None else scores
    counts = {"train_counts": model.train_counts_, "train_documents": model.train_documents_}
    return metrics.evaluate(split.labels, scores, k, classes=model.classes_, **counts)


def one_text_ms(model, texts, features=None):
    """Return the median duration of `predict` for one text in ms, after a warm-up."""
    times = []
    for row in range(min(55, len(texts))):
        own = {} if features is None else {"features": features[row]}
        started = time.perf_counter()
        model.predict([texts[row]], **own)
        times.append(1e3 * (time.perf_counter() - started))
    return float(np.median(times[5:]))


def train(name, settings, whole, split, given):
    """Train, save, predict and evaluate one variant."""
    report = TimedReporter()
    model, folder = treetop.XRTransformer(**settings), given.models / name
    options = {"validation": (split.texts, split.labels)} if given.validate else {}
    with PeakMemory() as memory:
        started = time.perf_counter()
        model.fit(
            whole.texts,
            whole.labels,
            report=report,
            run=given.run,
            resume=given.run is not None,
            **options,
        )
        fitted = time.perf_counter() - started
        model.save(folder)
        saved = time.perf_counter() - started
    loaded = treetop.load(str(folder))
    loaded.predict(split.texts[:64])
    times = []
    for _ in range(given.repeat):
        started = time.perf_counter()
        scores = loaded.predict_scores(split.texts, 10)
        times.append(time.perf_counter() - started)
    result = measure(loaded, split, scores=scores)
    made = {
        "variant": name,
        "settings": settings,
        "fit_seconds": fitted,
        "saved_seconds": saved,
        "stages": {step: round(seconds, 3) for step, seconds in report.seconds.items()},
        "peak_memory_gb": memory.peak,
        "predict_ms": 1e3 * float(np.median(times)) / len(split.texts),
        "one_text_ms": one_text_ms(loaded, split.texts) if given.latency else None,
        "model_mb": sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) / 1e6,
        "trees": [str(ranker.tree) for ranker in model.rankers_],
        "metrics": {k: v for k, v in result.items() if isinstance(v, float)},
        "losses": [(h["level"], h["step"], round(h["loss"], 4)) for h in model.history_][::8],
    }
    speed = f"{made['predict_ms']:.3f} ms per document, one text {made['one_text_ms']}"
    print(f"\n{name}: {saved:.1f} s, {memory.peak:.1f} GB, {speed}")
    print("   stages", made["stages"])
    print("   " + "  ".join(f"{m} {100 * result[m]:.2f}" for m in SHOWN), flush=True)
    return model, made


def splits(data, given):
    """Return the documents to train and to evaluate on: a split, or a share of the training set."""
    whole = data.split("train")
    texts, labels = list(whole.texts), list(whole.labels)
    if given.limit:
        texts, labels = texts[: given.limit], labels[: given.limit]
    if not given.hold_out:
        return Split(texts, labels), data.split(given.split)
    held = np.random.default_rng(1).random(len(texts)) < given.hold_out
    return tuple(
        Split(*([item for item, out in zip(items, held) if out == side] for items in (texts, labels)))
        for side in (False, True)
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--split", default="dev")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--variant", action="append", default=[])
    parser.add_argument("--run", type=Path)
    parser.add_argument("--models", type=Path, default=Path("models"), help="folder to save them in")
    parser.add_argument("--validate", action="store_true")
    parser.add_argument("--latency", action="store_true")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument(
        "--hold-out", type=float, default=0.0, help="share of train to evaluate on instead"
    )
    parser.add_argument(
        "--embeddings", type=Path, help="folder for the last variant's vectors, float16"
    )
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    started = time.perf_counter()
    warm_up(common_kernels())
    print(f"kernels {time.perf_counter() - started:.1f} s", file=sys.stderr)
    started = time.perf_counter()
    data = open_data(given.data, None, None)
    whole, split = splits(data, given)
    print(
        f"read {len(whole.texts):,} documents in {time.perf_counter() - started:.1f} s", file=sys.stderr
    )
    base = {"encoder": given.encoder, **dict(map(parse_assignment, given.set))}
    rows = []
    for variant in given.variant or ["default"]:
        name, _, changes = variant.partition(":")
        settings = {**base, **dict(map(parse_assignment, filter(None, changes.split(","))))}
        try:
            model, made = train(name, settings, whole, split, given)
        except Exception as error:
            if len(given.variant) < 2:
                raise
            print(f"{name}: {error!r}", flush=True)
            continue
        rows.append({"data": given.data.name, "split": given.split, **versions(), **made})
        facts = given.models / f"{name}.json"
        facts.write_text(json.dumps(rows[-1], indent=2) + "\n")
        if given.out:
            given.out.write_text(json.dumps(rows, indent=2) + "\n")
    if given.embeddings:
        given.embeddings.mkdir(exist_ok=True, parents=True)
        for part, texts in (("train", whole.texts), (given.split, split.texts)):
            vectors = model.encoder_.embed_texts(texts).astype(np.float16)
            for number, piece in enumerate(np.array_split(vectors, 3 if part == "train" else 1)):
                np.save(given.embeddings / f"{part}-{number}.npy", piece)


if __name__ == "__main__":
    main()
