"""How the command ``demo`` shows its results: marks and colours on a terminal, plain text elsewhere."""

from __future__ import annotations

import os
import sys
import textwrap
from pathlib import Path
from typing import Any

from treetop.cli.screen import percent, print_table
from treetop.data.fairsharing import FairSharing
from treetop.explain.explanation import Explanation

HEADINGS = {
    "xr-linear": "XRLinear",
    "xr-transformer-frozen": "XRTransformer (frozen)",
    "xr-transformer-fine-tuned": "XRTransformer (fine-tuned)",
}
METRICS = {"P@1": "P@1", "P@3": "P@3", "P@5": "P@5", "nDCG@5": "nDCG@5", "R@10": "recall@10"}
COSTS = {
    "train_seconds": "training time (s)",
    "milliseconds_alone": "one text at a time (ms)",
    "milliseconds_batched": "per text in a batch (ms)",
    "megabytes": "size on disk (MB)",
    "peak_memory_megabytes": "peak memory (MB)",
}
GREEN, BOLD, RESET = "\033[32m", "\033[1m", "\033[0m"
WIDTH = 96


def say(text: str) -> None:
    """Print at once, also to a pipe."""
    print(text, flush=True)


def silent(_: str) -> None:
    """Print nothing."""


def introduction(records: FairSharing) -> str:
    """What the data is, how much there is of it, and how it was split."""
    counts = records.counts
    return "\n".join(
        [
            "Data: FAIRsharing.org, descriptions of scientific databases, standards and policies, with",
            f"the keywords that curators gave them (from the package bioregistry {records.version}).",
            f"{counts['train']:,} records to train on, {counts['test']:,} to test on, "
            f"{counts['labels']:,} keywords, {counts['labels_per_record']:.1f} per record.",
            f"Left out: {counts['near_duplicates']:,} near-duplicates of other records, "
            f"{counts['without_keywords']:,} records without keywords.\n",
        ]
    )


def print_demo(report: dict[str, Any], explanation: Explanation | None, output: Path | None) -> None:
    """Everything that was measured, five records, one explanation, and what to do next."""
    models = report["models"]
    print("\nOn the test records; metrics in percent:\n")
    print_trials(models)
    best = list(models)[-1]
    print(f"\nTest records with the keywords that {HEADINGS[best]} predicts.")
    print(f"{right_mark()} marks keywords that the curators gave too.")
    for example in report["examples"]:
        print_example(example)
    if explanation is not None:
        print(f"\nWhy the first correct keyword of {report['explanation']['title']} is predicted:\n")
        print(textwrap.indent(str(explanation), "  "))
    print_next_steps(report["serve"], models, output)


def print_trials(models: dict[str, Any]) -> None:
    """Metrics and costs, one row each, one column per model."""
    rows = [["", *(HEADINGS[name] for name in models)]]
    for key, heading in METRICS.items():
        rows.append([heading, *(percent(model["metrics"][key]) for model in models.values())])
    rows.append([""] * len(rows[0]))
    for key, heading in COSTS.items():
        rows.append([heading, *(quantity(model[key]) for model in models.values())])
    print_table(rows)


def quantity(value: float | None) -> str:
    """A cost with as many digits as matter."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def print_example(example: dict[str, Any]) -> None:
    """A record's title, its predicted labels, right ones marked, and the labels that were missed."""
    print(f"\n  {emphasized(example['title'], BOLD)}")
    for row in example["predicted"]:
        line = f"{right_mark() if row['right'] else ' '} {row['score']:.2f}  {row['label']}"
        print(f"    {emphasized(line, GREEN) if row['right'] else line}")
    if example["missed"]:
        missed = textwrap.wrap(f"missed: {', '.join(example['missed'])}", WIDTH - 6)
        print(textwrap.indent("\n".join(missed), "      "))


def print_next_steps(serve_line: str, models: dict[str, Any], output: Path | None) -> None:
    """What to type next."""
    command = serve_line.partition(" demo ")[0]
    *_, best = models.values()
    folder = output or best["folder"]
    steps = [(serve_line, "open the web page on this model")]
    if output is None:
        steps.append((f"{command} demo -o mymodel", "save the model where you want it"))
    if len(models) == 2:
        steps.append((f"{command} demo --fine-tune", "also fine-tune the encoder: minutes on a CPU"))
    steps += [
        (
            f"{command} demo --export records",
            "write these records as CSV files",
        ),
        (f"{command} train mydata.csv -o mymodel", "your own data: columns text and labels"),
    ]
    width = max(len(step) for step, _ in steps)
    print(f"\nThe model is in {folder}\n\nNext:")
    for step, purpose in steps:
        print(f"  {step:<{width}}  {purpose}")


def is_terminal() -> bool:
    """Whether colours are wanted and can be shown."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return sys.stdout.isatty() and not plain


def right_mark() -> str:
    """The mark of a right label: ✓ on a terminal that can print it, else an asterisk."""
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    return "✓" if sys.stdout.isatty() and encoding.startswith("utf") else "*"


def emphasized(text: str, style: str) -> str:
    """Coloured or bold on a terminal."""
    return f"{style}{text}{RESET}" if is_terminal() else text
