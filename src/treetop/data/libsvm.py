"""Multi-label files of libsvm: one ``l1,l2 f:v f:v …`` per line, no header.

Numbers are used as column numbers without any shift: a file that counts from 1 has an empty column 0,
so that files of one data set always agree.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from treetop.data.dataset import Dataset, Split
from treetop.data.files import first_lines, plain_name, split_files, write_lines
from treetop.data.holding import check_characters, sparse_features_of
from treetop.data.labelnames import with_names_of
from treetop.data.options import ReadOptions
from treetop.data.pairs import Rows, features_in, labels_in, read_rows, sparse_lines
from treetop.data.reading import Recognized
from treetop.data.xmlrepo import NAMES, names_file
from treetop.errors import TreetopError

NAME = "libsvm"
USES = ("merge_duplicates",)
ABOUT = "libsvm multi-label: l1,l2 f:v f:v … per line, counted from 0 or from 1"
SUFFIXES = (".libsvm", ".svm", ".svmlight")
LABELS = re.compile(r"\d+(,\d+)*")
LINES_CHECKED = 20
LINE = re.compile(r"(\d+(,\d+)*\s+)?\d+:[-+.\deE]+(\s+\d+:[-+.\deE]+)*")


def matches(path: Path) -> bool:
    """Whether a file, or the files of a folder, are of this format."""
    return bool(libsvm_files(path))


def libsvm_files(path: Path) -> dict[str, Path]:
    """Files of this format by split."""
    return split_files(path, lambda name: [name + suffix for suffix in (*SUFFIXES, ".txt")], is_libsvm)


def is_libsvm(path: Path) -> bool:
    """Whether a file has the suffix, or its first lines are sparse text, some with labels alone."""
    if plain_name(path).endswith(SUFFIXES):
        return True
    lines = [line.strip() for line in first_lines(path, LINES_CHECKED)]
    lines = [line for line in lines if line]
    return any(map(LINE.fullmatch, lines)) and all(
        LINE.fullmatch(line) or LABELS.fullmatch(line) for line in lines
    )


def read(path: Path, options: ReadOptions) -> Dataset:
    """Read all splits."""
    files = libsvm_files(path)
    splits = {name: read_libsvm(file) for name, file in files.items()}
    dataset = Dataset(NAME, splits, reading=Recognized(files=tuple(files.values()))).same_width()
    return with_names_of(dataset, names_file(path), options, exactly=False)


def read_libsvm(path: Path) -> Split:
    """Read features and labels of one file."""
    rows = without_empty(read_rows(path, with_labels=True, header=False))
    if not rows.label_ends.size:
        raise TreetopError(f"{path}: empty file: add at least one document")
    return Split(None, None, features_in(path, rows), labels_in(path, rows))


def without_empty(rows: Rows) -> Rows:
    """Rows without those of blank lines, which are not documents in this format."""
    sizes = np.diff(rows.label_ends, prepend=0) + np.diff(rows.feature_ends, prepend=0)
    kept = sizes > 0
    return rows._replace(label_ends=rows.label_ends[kept], feature_ends=rows.feature_ends[kept])


def write(dataset: Dataset, folder: Path) -> None:
    """Write one file per split and one of label names."""
    dataset = dataset.with_matrices()
    check_characters([dataset.label_names or []], NAME, "\n\r")
    for name, split in dataset.splits.items():
        write_lines(folder / f"{name}.libsvm", sparse_lines(sparse_features_of(split, NAME), split.Y))
    write_lines(folder / NAMES[0], dataset.label_names or [])
