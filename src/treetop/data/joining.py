"""Several data sets as one: a split consists of the documents of all that have it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import scipy.sparse as sp

from treetop.data.dataset import SPLITS, Dataset, Split
from treetop.errors import TreetopError
from treetop.runtime.texts import kept_texts


def joined(datasets: Sequence[Dataset], sources: Sequence[Path]) -> Dataset:
    """Put data sets that were read from `sources` one after the other.

    Labels are matched by name. All must have texts, or all features.
    """
    if len(datasets) == 1:
        return datasets[0]
    if not same_columns(datasets):
        datasets = [with_names(dataset) for dataset in datasets]
    check_alike(datasets, sources)
    every = dict.fromkeys(name for dataset in datasets for name in dataset.splits)
    names = [name for name in SPLITS if name in every] + [name for name in every if name not in SPLITS]
    splits = {
        name: joined_split([dataset.splits[name] for dataset in datasets if name in dataset.splits])
        for name in names
    }
    first = datasets[0]
    files = chain.from_iterable(dataset.reading.files for dataset in datasets)
    titles = {uri: title for dataset in datasets for uri, title in (dataset.label_titles or {}).items()}
    return replace(
        first,
        format=" + ".join(dict.fromkeys(dataset.format for dataset in datasets)),
        splits=splits,
        label_titles=titles or None,
        reading=replace(first.reading, files=tuple(files)),
    ).same_width()


def same_columns(datasets: Sequence[Dataset]) -> bool:
    """Whether all labels are matrices whose columns are the same labels."""
    names = datasets[0].label_names
    matrices = all(s.labels is None for dataset in datasets for s in dataset.splits.values())
    return matrices and all(dataset.label_names == names for dataset in datasets)


def with_names(dataset: Dataset) -> Dataset:
    """A copy with labels as lists of names."""
    splits = {
        name: replace(split, labels=split.named_labels(dataset.label_names), Y=None, excluded=None)
        if split.has_labels
        else split
        for name, split in dataset.splits.items()
    }
    return replace(dataset, splits=splits, label_names=None, label_texts=None)


def check_alike(datasets: Sequence[Dataset], sources: Sequence[Path]) -> None:
    """Raise unless all have texts or all features, and all labels or none, as the first has."""
    first = next(iter(datasets[0].splits.values()))
    for dataset, source in zip(datasets, sources, strict=True):
        for split in dataset.splits.values():
            if (split.texts is None) != (first.texts is None):
                kinds = ("texts", "features") if first.texts is not None else ("features", "texts")
                raise TreetopError(
                    f"{source}: has {kinds[1]}, but {sources[0]} has {kinds[0]}: give data of one kind"
                )
            if split.texts is not None and (split.X is None) != (first.X is None):
                lacking, having = (source, sources[0]) if split.X is None else (sources[0], source)
                raise TreetopError(
                    f"{lacking}: has texts alone, but the texts in {having} have precomputed features: "
                    "give --features none to use the texts only"
                )
            if split.has_labels != first.has_labels:
                raise TreetopError(
                    f"{source}: some documents have labels and others have no column of labels: name "
                    "the column as in the other files, or leave the file out"
                )


def joined_split(parts: Sequence[Split]) -> Split:
    """Documents of several splits, one after the other."""
    if len(parts) == 1:
        return parts[0]

    def listed(kind: str) -> Any:
        values = [getattr(part, kind) for part in parts]
        if any(value is None for value in values):
            return None
        every = chain.from_iterable(values)
        return kept_texts(every) if kind == "texts" else list(every)

    def stacked(kind: str) -> sp.csr_matrix | None:
        values = [getattr(part, kind) for part in parts]
        if any(value is None for value in values):
            return None
        width = max(value.shape[1] for value in values)
        wide = [sp.csr_matrix((m.data, m.indices, m.indptr), (m.shape[0], width)) for m in values]
        return sp.csr_matrix(sp.vstack(wide, "csr"))

    return Split(
        listed("texts"), listed("labels"), stacked("X"), stacked("Y"), records=listed("records")
    )


def contradicting_texts(dataset: Dataset) -> int:
    """The number of training documents whose text occurred before with other labels."""
    split = dataset.splits.get("train")
    if split is None or split.texts is None or split.labels is None:
        return 0
    first: dict[str, list[str]] = {}
    pairs = zip(split.texts, split.labels, strict=True)
    return sum(set(first.setdefault(text, labels)) != set(labels) for text, labels in pairs)
