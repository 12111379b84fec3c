"""What the command ``demo`` does: train on real records, compare, explain, and serve the result."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn

import treetop
from treetop.base import FittedMixin
from treetop.cli import demo_screen
from treetop.cli.evaluate import evaluate_split
from treetop.cli.options import DemoOptions
from treetop.cli.train import fit
from treetop.data import Split
from treetop.data.convert import convert
from treetop.data.fairsharing import FairSharing, load_fairsharing, package_version
from treetop.errors import TreetopError
from treetop.explain.explanation import Explanation
from treetop.kernels import common_kernels
from treetop.kernels.warming import warm_up
from treetop.model import layout
from treetop.model.compress import folder_bytes
from treetop.runtime.extras import EXTRAS, check_installed, require
from treetop.runtime.memory import peak_memory
from treetop.runtime.progress import reporter
from treetop.runtime.temporary import private_folder

LINEAR, FROZEN, FINE_TUNED = "xr-linear", "xr-transformer-frozen", "xr-transformer-fine-tuned"
# Chosen on a quarter of the training records, held back for this, never on the test records. With
# 128 tokens instead of 64, P@1 gained 0.6 points there and the encoder took nearly twice as long.
WORDS: dict[str, Any] = {"ngrams": "word:1"}
WITH_ENCODER: dict[str, Any] = {**WORDS, "encoder": "minilm", "max_length": 64, "dense_weight": 0.5}
SETTINGS: dict[str, dict[str, Any]] = {
    LINEAR: WORDS,
    FROZEN: {**WITH_ENCODER, "fine_tune": False},
    FINE_TUNED: {
        **WITH_ENCODER,
        "batch": 32,
        "budget": "3 epochs",
        "learning_rate": 1e-4,
        "head_learning_rate": 1e-3,
        "bootstrap_first": True,
    },
}
ENCODER_MODULES = (*EXTRAS["transformer"], *EXTRAS["minilm"])
DEPTHS = (1, 3, 5, 10)
LABELS_SHOWN, RECORDS_SHOWN, WORDS_SHOWN = 5, 5, 8
TEXTS_TIMED = 30


@dataclass(frozen=True)
class Trial:
    """One trained model: where it is kept, how good it is, and what it costs."""

    folder: str
    settings: dict[str, Any]
    metrics: dict[str, Any]
    train_seconds: float
    milliseconds_alone: float
    milliseconds_batched: float
    megabytes: float
    peak_memory_megabytes: float | None


def run_demo(options: DemoOptions) -> None:
    """Train, compare and explain models of the FAIRsharing records; with ``--serve``, serve the best.

    With ``--serve``, a model that an earlier run has kept is not trained again.
    """
    check_demo(options)
    if options.export is not None:
        export_records(load_fairsharing(), options.export)
        return
    if options.serve and (kept := kept_model(options, package_version())) is not None:
        print(f"Using the model that an earlier run kept in {kept}")
        serve_model(kept, options.port)
    records = load_fairsharing()
    say = demo_screen.silent if options.json else demo_screen.say
    say(demo_screen.introduction(records))
    warm_up(common_kernels(), report=reporter(quiet=options.json))
    trials: dict[str, Trial] = {}
    for variant in variants_of(options):
        model, trials[variant] = train_variant(variant, records)
        say(f"{demo_screen.HEADINGS[variant]}: trained in {trials[variant].train_seconds:.1f} s")
    if options.output is not None:
        model.save(options.output, trials[variant].metrics)
    test = records.dataset.split("test")
    explained = explain_first_hit(model, test)
    serve_line = shlex.join([*program(), "demo", "--serve", *flags_of(options)])
    report = {
        "records": records.counts,
        "models": {name: asdict(trial) for name, trial in trials.items()},
        "examples": examples_of(model, test),
        "explanation": explained and {"title": explained[0], **explained[1].to_dict()},
        "serve": serve_line,
    }
    if options.json:
        print(json.dumps(report, indent=2, ensure_ascii=False))
    else:
        demo_screen.print_demo(report, explained and explained[1], options.output)
    if options.serve:
        serve_model(Path(trials[variant].folder), options.port)


def export_records(records: FairSharing, target: Path) -> None:
    """Write the records as CSV, or in the format that the target's name says, and stop."""
    form = "csv" if not target.suffix else None
    written = convert(records.dataset, target, form)
    counts = records.counts
    print(
        f"{target}: {written}, {counts['train']:,} records to train on, {counts['test']:,} to test on"
    )


def check_demo(options: DemoOptions) -> None:
    """Raise for options that contradict each other, a folder in use, and missing packages."""
    if options.linear and options.fine_tune:
        raise TreetopError("--linear has no encoder to fine-tune: choose --linear or --fine-tune")
    if options.json and options.serve:
        raise TreetopError("--json prints results and --serve starts a server: choose one of them")
    if options.output is not None:
        layout.check_target(options.output)
    if options.serve:
        require("the web page and the HTTP API", "serve", "fastapi", "uvicorn", "httptools")
    if not (options.linear or options.export):
        instead = "run treetop demo --linear"
        check_installed("text encoders", "minilm", *ENCODER_MODULES, instead=instead)


def variants_of(options: DemoOptions) -> Iterator[str]:
    """The models to train, the best last; fine-tuning only on request or on a GPU.

    Whether there is a GPU is asked after XRLinear is trained: importing torch counts as memory.
    """
    yield LINEAR
    if not options.linear:
        yield FROZEN
        if options.fine_tune or (options.fine_tune is None and has_gpu()):
            yield FINE_TUNED


def has_gpu() -> bool:
    """Whether torch would compute on a GPU."""
    from treetop.features.encoders.devices import pick_device

    return pick_device("auto").type != "cpu"


def cache_folder() -> Path:
    """Where models are kept between runs: ``$XDG_CACHE_HOME/treetop/demo``, by default in ~/.cache.

    Without a home that can be written, as in containers, it is a folder for temporary files.
    """
    place = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
    try:
        folder = place.expanduser() / "treetop" / "demo"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # RuntimeError: this user has no home
        return private_folder("demo")
    return folder if os.access(folder, os.W_OK) else private_folder("demo")


def origin_of(variant: str, records_version: str) -> str:
    """What a model was trained with: kept models of another origin are trained again."""
    settings = json.dumps(SETTINGS[variant], sort_keys=True)
    return f"treetop {treetop.__version__}, bioregistry {records_version}, {variant} {settings}"


def kept_model(options: DemoOptions, records_version: str) -> Path | None:
    """The folder of the best model if an earlier run has kept it."""
    *_, best = variants_of(options)
    folder = cache_folder() / best
    with suppress(TreetopError):
        measured = layout.read_config(folder, verify=False)["metrics"]
        if measured.get("demo") == origin_of(best, records_version):
            return folder
    return None


def train_variant(variant: str, records: FairSharing) -> tuple[FittedMixin, Trial]:
    """Train on the training records, measure on the test records, and keep the model in the cache."""
    folder = cache_folder() / variant
    layout.check_target(folder)
    estimator = (treetop.XRLinear if variant == LINEAR else treetop.XRTransformer)(**SETTINGS[variant])
    started = time.perf_counter()
    fit(estimator, records.dataset, records.dataset.split("train"))
    trained = time.perf_counter()
    test = records.dataset.split("test")
    measured = evaluate_split(estimator, test, None, DEPTHS)
    batched = time.perf_counter() - trained
    texts = list(test.texts or ())[:TEXTS_TIMED]
    started_alone = time.perf_counter()
    for text in texts:
        estimator.predict([text], LABELS_SHOWN)
    alone = time.perf_counter() - started_alone
    estimator.save(folder, {**measured, "demo": origin_of(variant, records.version)})
    trial = Trial(
        folder=str(folder),
        settings=SETTINGS[variant],
        metrics=measured,
        train_seconds=trained - started,
        milliseconds_alone=1000 * alone / max(1, len(texts)),
        milliseconds_batched=1000 * batched / max(1, len(test)),
        megabytes=folder_bytes(folder) / 1e6,
        peak_memory_megabytes=peak_memory() / 1e6 or None,
    )
    return estimator, trial


def examples_of(model: FittedMixin, test: Split) -> list[dict[str, Any]]:
    """Titles, predictions marked as right or wrong, and missed labels of a few test records."""
    texts = list(test.texts or ())[:RECORDS_SHOWN]
    examples = []
    for text, true, predicted in zip(
        texts, test.named_labels(None), model.predict(texts, LABELS_SHOWN), strict=False
    ):
        names = [str(name) for name, _ in predicted]
        examples.append(
            {
                "title": text.partition("\n")[0],
                "predicted": [
                    {"label": str(name), "score": round(float(score), 4), "right": name in true}
                    for name, score in predicted
                ],
                "missed": [name for name in true if name not in names],
            }
        )
    return examples


def explain_first_hit(model: FittedMixin, test: Split) -> tuple[str, Explanation] | None:
    """The first test record whose best label is right, by its title, and why it gets that label."""
    for text, true in zip(test.texts or (), test.named_labels(None), strict=True):
        [[(label, _)]] = model.predict([text], 1)
        if label in true:
            return text.partition("\n")[0], model.explain(text, label, words=WORDS_SHOWN)
    return None


def program() -> list[str]:
    """The words that start this program again, as the user would type them."""
    called = Path(sys.argv[0])
    if called.name != "treetop":
        return ["python", "-m", "treetop"]
    return ["treetop" if shutil.which("treetop") == str(called) else str(called)]


def flags_of(options: DemoOptions) -> list[str]:
    """The options that decide which model is the best one."""
    if options.linear:
        return ["--linear"]
    return {None: [], True: ["--fine-tune"], False: ["--no-fine-tune"]}[options.fine_tune]


def serve_model(folder: Path, port: int) -> NoReturn:
    """Become ``treetop serve``: a fresh process, because workers are forked and torch has threads."""
    command = [sys.executable, "-m", "treetop", "serve", str(folder), "--port", str(port)]
    sys.stdout.flush()
    os.execv(sys.executable, command)
