"""What the commands ``data inspect`` and ``data convert`` do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from treetop.cli.console import Console
from treetop.cli.data_options import ConvertOptions, InspectOptions
from treetop.cli.paths import check_data, read_data
from treetop.cli.screen import print_table
from treetop.data import Dataset, Split, pecos
from treetop.data.convert import FEATURES, LINES, convert
from treetop.data.read import read_dataset
from treetop.errors import TreetopError
from treetop.runtime.extras import require


def inspect_dataset(options: InspectOptions, console: Console | None = None) -> None:
    """Print a summary of a data set, and plot it if a picture is asked for."""
    console = console or Console()
    check_data(options.data)
    dataset = read_dataset(options.data, options)
    if options.picture is not None:
        draw_dataset(dataset, options.picture)
    if options.json:
        read_as = {"data": str(options.data), "format": dataset.format, **dataset.reading.to_dict()}
        console.json({**read_as, **dataset_figures(dataset)})
        return
    print(f"{options.data}: {dataset.format}")
    if dataset.reading.detail:
        print(dataset.reading.detail)
    print()
    print_figures(dataset)
    for warning in dataset.reading.warnings:
        console.note(warning)
    if options.picture is not None:
        console.message(f"\n{options.picture}: label frequencies and document lengths")


def print_figures(dataset: Dataset) -> None:
    """Print sizes, lengths, duplicates and label frequencies."""
    figures = dataset_figures(dataset)
    splits = figures["splits"]
    rows = [["", *splits]]
    for name in dict.fromkeys(name for split in splits.values() for name in split):
        rows.append(
            [name.replace("_", " "), *(shown_number(split.get(name)) for split in splits.values())]
        )
    print_table(rows)
    labels = figures.get("labels")
    if labels is None:
        return
    print(
        f"\nlabels in train: {labels['count']:,}; with 1 document {labels['with_1_document']:,}, with "
        f"5 or more {labels['with_5_or_more']:,}, with more than 50 {labels['with_more_than_50']:,}"
    )
    print("most frequent: " + ", ".join(f"{label} ({n:,})" for label, n in labels["most_frequent"]))
    for name, overlap in figures["overlap"].items():
        for what, count in overlap.items():
            print(f"{what.replace('_', f' of {name} ', 1).replace('_', ' ')}: {count:,}")


def shown_number(value: float | None) -> str:
    """A count with thousands separators, a mean with two decimals, nothing for None."""
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"


def dataset_figures(dataset: Dataset) -> dict[str, Any]:
    """Figures of every split; label frequencies in train and overlaps with it, if it has labels."""
    names = dataset.label_names
    figures: dict[str, Any] = {
        "splits": {name: split_figures(split, names) for name, split in dataset.splits.items()}
    }
    train = dataset.splits.get("train")
    if train is None or not train.has_labels:
        return figures
    counts = train.label_counts(dataset.label_names)
    sizes = np.array(sorted(counts.values()))
    figures["labels"] = {
        "count": int(sizes.size),
        "with_1_document": int((sizes == 1).sum()),
        "with_5_or_more": int((sizes >= 5).sum()),
        "with_more_than_50": int((sizes > 50).sum()),
        "most_frequent": counts.most_common(5),
    }
    texts = set(train.texts or ())
    figures["overlap"] = {
        name: overlap_with_train(split, dataset, set(counts), texts)
        for name, split in dataset.splits.items()
        if name != "train"
    }
    return figures


def overlap_with_train(
    split: Split, dataset: Dataset, labels: set[str], texts: set[str]
) -> dict[str, int]:
    """Labels of a split that training does not have, and texts that it has too."""
    overlap = {}
    if split.has_labels:
        overlap["labels_not_in_train"] = len(set(split.label_counts(dataset.label_names)) - labels)
    if split.texts is not None and texts:
        overlap["texts_also_in_train"] = sum(text in texts for text in split.texts)
    return overlap


def document_lengths(split: Split) -> np.ndarray:
    """Number of words per text, or of features per row: int array of shape (N,)."""
    if split.texts is None:
        return np.diff(split.X.indptr) if split.X is not None else np.zeros(0, np.int64)
    return np.array([len(text.split()) for text in split.texts])


def split_figures(split: Split, names: list[str] | None) -> dict[str, float]:
    """Counts (int) and means (float) of one split, by their names."""
    figures: dict[str, float] = {"documents": len(split)}
    lengths = document_lengths(split)
    unit = "words" if split.texts is not None else "features"
    if split.X is not None:
        figures["features"] = int(split.X.shape[1])
    figures[f"mean_{unit}_per_document"] = float(lengths.mean()) if lengths.size else 0.0
    figures[f"maximum_{unit}_per_document"] = int(lengths.max(initial=0))
    figures[f"documents_without_{unit}"] = int((lengths == 0).sum())
    if split.texts is not None:
        figures["duplicate_texts"] = len(split.texts) - len(set(split.texts))
    if split.has_labels:
        sizes = split.label_sizes()
        figures["labels"] = len(split.label_counts(names))
        figures["mean_labels_per_document"] = float(sizes.mean())
        figures["documents_without_labels"] = int((sizes == 0).sum())
    return figures


def draw_dataset(dataset: Dataset, path: Path) -> None:
    """Plot label frequencies and document lengths to a PNG or SVG file."""
    require("pictures", "report").use("Agg")
    from matplotlib import pyplot

    longest = max(int(document_lengths(split).max(initial=1)) for split in dataset.splits.values())
    edges = np.unique(np.geomspace(1, longest + 1, 40).round()) - 0.5
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    for name, split in dataset.splits.items():
        if split.has_labels:
            counts = np.array(sorted(split.label_counts(dataset.label_names).values(), reverse=True))
            left.loglog(np.arange(1, counts.size + 1), counts, label=f"{name}: {counts.size:,} labels")
        lengths = document_lengths(split)
        lengths = lengths[lengths > 0]
        if lengths.size:
            weights = np.full(lengths.size, 100 / lengths.size)
            right.hist(
                lengths, edges, weights=weights, histtype="step", label=f"{name}: {len(split):,}"
            )
    unit = "words" if any(split.texts is not None for split in dataset.splits.values()) else "features"
    left.set(xlabel="label, most frequent first", ylabel="documents", title="Label frequencies")
    right.set(xscale="log", xlabel=f"{unit} per document", ylabel="% of documents", title="Lengths")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(frameon=False)
    try:
        figure.savefig(path, dpi=130)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise TreetopError(
            f"{path}: cannot be written ({reason}): give a .png or .svg file in an existing folder"
        ) from None
    finally:
        pyplot.close(figure)


def convert_dataset(options: ConvertOptions, console: Console | None = None) -> None:
    """Write data in another format, and note what could not be kept."""
    console = console or Console()
    check_data(options.source)
    with console.progress() as report:
        dataset = read_data(options.source, options, report)
        report.step("writing data")
        written = convert(dataset, options.target, options.form)
    sizes = ", ".join(f"{name} {len(split):,}" for name, split in dataset.splits.items())
    console.message(f"{options.target}: {written} from {dataset.format}; documents: {sizes}")
    texts = (text for split in dataset.splits.values() for text in split.texts or ())
    both = any(split.texts is not None and split.X is not None for split in dataset.splits.values())
    if both and written != pecos.NAME:
        lost = "texts" if written in FEATURES else "precomputed features"
        console.note(f"the {lost} were left out: {written} cannot hold texts and features, pecos can")
    breaks = sum("\n" in text or "\r" in text for text in texts)
    if breaks and written in LINES:
        console.note(
            f"{breaks:,} texts had line breaks, which became spaces: "
            f"{written} has one document per line"
        )
