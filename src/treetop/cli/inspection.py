"""What the command ``data inspect`` does."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np

from treetop.cli.screen import print_table
from treetop.data import Dataset, Split, open_data


def inspect_dataset(path: Path, text_column: str | None, labels_column: str | None) -> None:
    """Print a page of figures about a data set."""
    dataset = open_data(path, text_column, labels_column)
    print(f"{path}: {dataset.format}\n")
    print_figures(dataset)


def print_figures(dataset: Dataset) -> None:
    """Documents, labels, lengths, duplicates and the labels' long tail."""
    columns = [figures(split, dataset.label_names) for split in dataset.splits.values()]
    rows = [["", *dataset.splits]]
    for name in columns[0]:
        rows.append([name, *(column.get(name, "") for column in columns)])
    print_table(rows)
    train = dataset.splits.get("train")
    if train is None or (train.labels is None and train.Y is None):
        return
    counts = Counter(label for line in train.named_labels(dataset.label_names) for label in line)
    sizes = np.array(sorted(counts.values()))
    print(
        f"\nlabels in train: {sizes.size:,}; with 1 document {int((sizes == 1).sum()):,}, "
        f"with 5 or more {int((sizes >= 5).sum()):,}, with more than 50 {int((sizes > 50).sum()):,}"
    )
    print("most frequent: " + ", ".join(f"{name} ({n:,})" for name, n in counts.most_common(5)))
    for name, split in dataset.splits.items():
        if name != "train" and (split.labels is not None or split.Y is not None):
            unseen = {x for line in split.named_labels(dataset.label_names) for x in line} - set(counts)
            print(f"labels of {name} that train lacks: {len(unseen):,}")
        if name != "train" and split.texts is not None and train.texts is not None:
            both = len(set(split.texts) & set(train.texts))
            print(f"texts of {name} that are in train too: {both:,}")


def figures(split: Split, names: list[str] | None) -> dict[str, str]:
    """Figures of one split."""
    made = {"documents": f"{len(split):,}"}
    if split.texts is not None:
        words = np.array([text.count(" ") + 1 if text.strip() else 0 for text in split.texts])
        made["words a document, mean"] = f"{words.mean():.1f}"
        made["words a document, longest"] = f"{words.max():,}"
        made["documents without text"] = f"{int((words == 0).sum()):,}"
    elif split.X is not None:
        made["features"] = f"{split.X.shape[1]:,}"
        made["features a document, mean"] = f"{split.X.nnz / max(1, split.X.shape[0]):.1f}"
    if split.labels is not None or split.Y is not None:
        lines = split.named_labels(names)
        sizes = np.array([len(line) for line in lines])
        made["labels"] = f"{len({label for line in lines for label in line}):,}"
        made["labels a document, mean"] = f"{sizes.mean():.2f}"
        made["documents without labels"] = f"{int((sizes == 0).sum()):,}"
    return made
