"""What the command ``demo`` does."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import treetop
from treetop.cli import screen
from treetop.cli.inspection import print_figures
from treetop.cli.train import fit
from treetop.cli.work import evaluate_split
from treetop.data import Dataset, Split
from treetop.data.docstrings import load_docstrings
from treetop.features.encoders.opening import require_torch
from treetop.model import layout as store
from treetop.settings.keywords import TransformerKeywords

Trainable = treetop.XRLinear | treetop.XRTransformer
SHOWN = 5
# What treetop itself brings: the demo is the same wherever other packages are installed too.
PACKAGES = ("numpy", "scipy", "networkx", "sympy", "torch", "numba", "rich")
# Small enough for two CPU cores: a brief fine-tuning on the beginning of each docstring.
DEMO_SETTINGS: TransformerKeywords = {
    "encoder": "minilm",
    "max_length": 48,
    "batch": 32,
    "budget": "1 epochs",
    "first_tree": "64-L",
    "learning_rate": 1e-4,
    "head_learning_rate": 1e-3,
    "bootstrap_first": True,
}
OWN_DATA = """
Your own data: put one document a line into mydata/train.txt and its labels, separated by tabs, into
the same line of mydata/train.labels (or use a CSV or JSONL file with the columns text and labels).

  treetop train mydata -o mymodel          learn; --model xr-transformer for the encoder too
  treetop predict mymodel new-texts.txt    label names and scores, one JSON line per text
  treetop evaluate mymodel mydata          figures on mydata/test.txt and test.labels, if there
"""


def run_demo(output: Path | None, linear: bool = False) -> None:
    """Train, evaluate and show on the docstrings of the installed packages."""
    if output is not None:
        store.check_target(output)
    if not linear:
        require_torch()
    print("Data: the documentation of the scientific packages installed here. The text is what a")
    print("docstring says; the labels are the names of the parameters of the function it documents.\n")
    dataset = load_docstrings(PACKAGES)
    print_figures(dataset)
    screen.compile_kernels()
    test = dataset.split("test")
    model, result = train_and_measure(treetop.XRLinear(), dataset, test)
    if linear:
        print("\nOn the test documents:\n")
        screen.print_measures(result)
    else:
        baseline = result
        model, result = train_and_measure(treetop.XRTransformer(**DEMO_SETTINGS), dataset, test)
        print("\nOn the test documents, in per cent:\n")
        screen.print_comparison({"XRLinear": baseline, "XRTransformer": result})
    show_predictions(model, result, test, output)


def train_and_measure(
    model: Trainable, dataset: Dataset, test: Split
) -> tuple[Trainable, dict[str, Any]]:
    """Fit on the training documents, and measure on those of `test`."""
    started = time.perf_counter()
    fit(model, dataset, dataset.split("train"))
    seconds = time.perf_counter() - started
    print(f"{type(model).__name__} trained in {seconds:.1f} s", flush=True)
    return model, {**evaluate_split(model, test, None), "seconds": seconds}


def show_predictions(
    model: Trainable, result: dict[str, Any], test: Split, output: Path | None
) -> None:
    """Save, load, and predict some test documents."""
    with tempfile.TemporaryDirectory() as spare:
        folder = output or Path(spare) / "model"
        model.save(folder, result)
        loaded = treetop.load(str(folder))
        print(f"\n{SHOWN} test documents, labels that are right marked with *:\n")
        shown = list(test.texts or ())[:SHOWN]
        for text, true, found in zip(
            shown, test.named_labels(None), loaded.predict(shown), strict=False
        ):
            marked = [f"{name}{'*' if name in true else ''} {score:.2f}" for name, score in found]
            print(f"  {text[:88]}…")
            print(f"    true:      {', '.join(true)}")
            print(f"    predicted: {', '.join(marked)}\n")
    if output:
        print(f"The model is in {output}.")
    print(OWN_DATA)
