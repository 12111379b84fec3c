"""What the commands ``data inspect`` and ``data convert`` do."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import numpy as np

from treetop.cli.screen import print_table
from treetop.data import Dataset, Split, open_data
from treetop.data.convert import LINES, convert
from treetop.errors import TreetopError
from treetop.runtime.extras import require


def inspect_dataset(
    path: Path, text_column: str | None, labels_column: str | None, picture: Path | None = None
) -> None:
    """Print a page of figures about a data set, and draw it if asked."""
    dataset = open_data(path, text_column, labels_column)
    print(f"{path}: {dataset.format}\n")
    print_figures(dataset)
    if picture is not None:
        draw_dataset(dataset, picture)
        print(f"\n{picture}: how often labels occur, how long documents are")


def print_figures(dataset: Dataset) -> None:
    """Documents, labels, lengths, duplicates and the labels' long tail."""
    columns = [split_figures(split, dataset.label_names) for split in dataset.splits.values()]
    rows = [["", *dataset.splits]]
    for name in dict.fromkeys(name for column in columns for name in column):
        rows.append([name, *(column.get(name, "") for column in columns)])
    print_table(rows)
    train = dataset.splits.get("train")
    if train is None or not train.has_labels:
        return
    counts = label_counts(train, dataset)
    sizes = np.array(sorted(counts.values()))
    print(
        f"\nlabels in train: {sizes.size:,}; with 1 document {int((sizes == 1).sum()):,}, "
        f"with 5 or more {int((sizes >= 5).sum()):,}, with more than 50 {int((sizes > 50).sum()):,}"
    )
    print("most frequent: " + ", ".join(f"{name} ({n:,})" for name, n in counts.most_common(5)))
    known = set(train.texts or ())
    for name, split in dataset.splits.items():
        if name != "train" and split.has_labels:
            lacking = set(label_counts(split, dataset)) - set(counts)
            print(f"labels of {name} that train lacks: {len(lacking):,}")
        if name != "train" and split.texts is not None and train.texts is not None:
            both = sum(text in known for text in split.texts)
            print(f"texts of {name} that are in train too: {both:,}")


def label_counts(split: Split, dataset: Dataset) -> Counter[str]:
    """How many documents of a split have each label."""
    return Counter(label for line in split.named_labels(dataset.label_names) for label in line)


def document_lengths(split: Split) -> np.ndarray:
    """Words of each text, or features of each row."""
    if split.texts is None:
        return np.diff(split.X.indptr) if split.X is not None else np.zeros(0, np.int64)
    return np.array([len(text.split()) for text in split.texts])


def split_figures(split: Split, names: list[str] | None) -> dict[str, str]:
    """Figures of one split."""
    made = {"documents": f"{len(split):,}"}
    words = document_lengths(split)
    what = "words" if split.texts is not None else "features"
    if split.X is not None:
        made["features"] = f"{split.X.shape[1]:,}"
    made[f"{what} a document, mean"] = f"{words.mean():.1f}"
    made[f"{what} a document, longest"] = f"{words.max():,}"
    made[f"documents without {what}"] = f"{int((words == 0).sum()):,}"
    if split.texts is not None:
        made["texts that came before"] = f"{len(split.texts) - len(set(split.texts)):,}"
    if split.has_labels:
        lines = split.named_labels(names)
        sizes = np.array([len(line) for line in lines])
        made["labels"] = f"{len({label for line in lines for label in line}):,}"
        made["labels a document, mean"] = f"{sizes.mean():.2f}"
        made["documents without labels"] = f"{int((sizes == 0).sum()):,}"
    return made


def draw_dataset(dataset: Dataset, path: Path) -> None:
    """How often labels occur, and how long documents are."""
    require("pictures", "report").use("Agg")
    from matplotlib import pyplot

    longest = max(int(document_lengths(split).max(initial=1)) for split in dataset.splits.values())
    edges = np.unique(np.geomspace(1, longest + 1, 40).round()) - 0.5
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    for name, split in dataset.splits.items():
        if split.has_labels:
            counts = np.array(sorted(label_counts(split, dataset).values(), reverse=True))
            left.loglog(np.arange(1, counts.size + 1), counts, label=f"{name}: {counts.size:,} labels")
        lengths = document_lengths(split)
        lengths = lengths[lengths > 0]
        if lengths.size:
            weights = np.full(lengths.size, 100 / lengths.size)
            right.hist(
                lengths, edges, weights=weights, histtype="step", label=f"{name}: {len(split):,}"
            )
    what = "words" if any(split.texts is not None for split in dataset.splits.values()) else "features"
    left.set(xlabel="label, the most frequent first", ylabel="documents", title="The labels' long tail")
    right.set(xscale="log", xlabel=f"{what} a document", ylabel="% of documents", title="Lengths")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(frameon=False)
    try:
        figure.savefig(path, dpi=130)
    except (OSError, ValueError) as error:
        raise TreetopError(f"{path}: cannot be written ({error})") from None
    finally:
        pyplot.close(figure)


def convert_dataset(
    source: Path, target: Path, form: str | None, text_column: str | None, labels_column: str | None
) -> None:
    """Write data in another format, and say what could not be kept."""
    dataset = open_data(source, text_column, labels_column)
    made = convert(dataset, target, form)
    sizes = ", ".join(f"{name} {len(split):,}" for name, split in dataset.splits.items())
    print(f"{target}: {made} from {dataset.format}; documents: {sizes}")
    breaks = sum(
        "\n" in text or "\r" in text for s in dataset.splits.values() for text in s.texts or ()
    )
    if breaks and made in LINES:
        print(
            f"treetop: {breaks:,} texts had line breaks, which became spaces: {made} has a document a "
            "line",
            file=sys.stderr,
        )
