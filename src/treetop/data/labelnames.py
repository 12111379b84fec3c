"""Files of label names, one per line, for the columns of label matrices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from treetop.data.dataset import Dataset, Split, check_label_count, clean_labels
from treetop.data.files import lines_of
from treetop.data.options import ReadOptions


def with_names_of(
    dataset: Dataset, file: Path | None, options: ReadOptions, exactly: bool = True
) -> Dataset:
    """A copy whose labels have the names in a file, if there is one.

    Labels of the same name stay apart, see `numbered_names`, unless the options say that their columns
    are to be merged. Unless `exactly`, there may be more names than columns of labels.
    """
    if file is None:
        return dataset
    names = list(lines_of(file))
    width = max((s.Y.shape[1] for s in dataset.splits.values() if s.Y is not None), default=0)
    wide = width if exactly else max(width, len(names))
    check_label_count(file, len(names), wide)
    if not options.merge_duplicates:
        warnings = (*dataset.reading.warnings, *duplicate_warnings(file, names))
        reading = replace(dataset.reading, warnings=warnings)
        return replace(dataset, label_names=numbered_names(names), reading=reading).same_width()
    dataset = replace(dataset, label_names=names).same_width()
    return merged(dataset, names)


def numbered_names(names: Sequence[str]) -> list[str]:
    """Names made distinct: the second ``a`` becomes ``a (2)``, or the next number that is free."""
    taken, seen, distinct = set(names), Counter[str](), []
    for name in names:
        seen[name] += 1
        own = name
        while seen[name] > 1 and own in taken:
            own = f"{name} ({seen[name]})"
            seen[name] += own in taken
        taken.add(own)
        distinct.append(own)
    return distinct


def duplicate_warnings(file: Path, names: Sequence[str]) -> list[str]:
    """A warning if names occur more than once, with the first of them."""
    lines: dict[str, list[int]] = {}
    for number, name in enumerate(names, start=1):
        lines.setdefault(name, []).append(number)
    repeated = {name: numbers for name, numbers in lines.items() if len(numbers) > 1}
    if not repeated:
        return []
    name, numbers = next(iter(repeated.items()))
    second = numbered_names(names)[numbers[1] - 1]
    count = f"{len(repeated):,} label names occur" if len(repeated) > 1 else "a label name occurs"
    return [
        f"{file}: {count} more than once, such as {name!r} on lines {numbers[0]:,} and {numbers[1]:,}: "
        f"they stay labels of their own, the latter called {second!r}; --merge-duplicates merges them"
    ]


def merged(dataset: Dataset, names: list[str]) -> Dataset:
    """A copy in which columns of the same name are one; a document has it if it had any of them."""
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    columns = np.array([numbers[name] for name in names], np.int64)

    def merge(Y: sp.csr_matrix | None) -> sp.csr_matrix | None:
        if Y is None:
            return None
        cells = Y.tocoo()
        shape = (Y.shape[0], len(numbers))
        return clean_labels(sp.coo_matrix((cells.data, (cells.row, columns[cells.col])), shape=shape))

    def merged_split(split: Split) -> Split:
        return replace(split, Y=merge(split.Y), excluded=merge(split.excluded))

    splits = {name: merged_split(split) for name, split in dataset.splits.items()}
    return replace(dataset, splits=splits, label_names=list(numbers))
