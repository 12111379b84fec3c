"""What the command ``demo`` does."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import treetop
from treetop.cli import screen
from treetop.cli.inspection import print_figures
from treetop.cli.work import fit, measure
from treetop.data.docstrings import load_docstrings

SHOWN = 5
OWN_DATA = """
Your own data: put one document a line into mydata/train.txt and its labels, separated by tabs, into
the same line of mydata/train.labels (or use a CSV or JSONL file with the columns text and labels).

  treetop train mydata -o mymodel          learn
  treetop predict mymodel new-texts.txt    label names and scores, a line of JSON a text
  treetop evaluate mymodel mydata          figures on mydata/test.txt and test.labels, if there
"""


def run_demo(output: Path | None) -> None:
    """Train, evaluate and show on the docstrings of the installed packages."""
    print("Data: the documentation of the scientific packages installed here. The text is what a")
    print("docstring says; the labels are the names of the parameters of the function it documents.\n")
    dataset = load_docstrings()
    print_figures(dataset)

    screen.compile_kernels()
    started = time.perf_counter()
    model = treetop.XRLinear()
    fit(model, dataset, dataset.split("train"))
    print(f"\nTrained in {time.perf_counter() - started:.1f} s. On the test documents:\n")
    test = dataset.split("test")
    result = measure(model, test, None)
    screen.print_measures(result)

    with tempfile.TemporaryDirectory() as spare:
        folder = output or Path(spare) / "model"
        model.save(folder, result)
        loaded = treetop.load(str(folder))
        print(f"\n{SHOWN} test documents, labels that are right marked with *:\n")
        shown = list(test.documents[:SHOWN])
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
