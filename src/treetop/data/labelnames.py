"""Files of label names, one per line, for the columns of label matrices."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from treetop.data.dataset import Dataset, Split, check_label_names, clean_labels
from treetop.data.files import lines_of
from treetop.data.options import ReadOptions


def with_names_of(
    dataset: Dataset, file: Path | None, options: ReadOptions, exactly: bool = True
) -> Dataset:
    """A copy whose labels have the names in a file, if there is one.

    A name that occurs twice is an error, unless the options say that its columns are to be merged.
    Unless `exactly`, there may be more names than columns of labels.
    """
    if file is None:
        return dataset
    names = list(lines_of(file))
    width = max((s.Y.shape[1] for s in dataset.splits.values() if s.Y is not None), default=0)
    wide = width if exactly else max(width, len(names))
    if not options.merge_duplicates or len(names) != wide:
        check_label_names(file, names, wide)
        return replace(dataset, label_names=names).same_width()
    dataset = replace(dataset, label_names=names).same_width()
    return merged(dataset, names)


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
