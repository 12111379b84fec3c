"""libsvm's multi-label files: ``l1,l2 f:v f:v …`` a line, no header.

Numbers are taken as they are written: a file that counts from 1 has an empty column 0, so that files
of one set always agree.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from treetop.data.dataset import SPLITS, Columns, Dataset, Split
from treetop.data.files import find_file, if_any_fits, plain_name, write_lines
from treetop.data.holding import check_characters, sparse_features_of
from treetop.data.pairs import Rows, features_in, first_lines, labels_in, read_rows, sparse_lines
from treetop.data.xmlrepo import NAMES, with_label_names
from treetop.errors import TreetopError

NAME = "libsvm"
ABOUT = "libsvm multi-label: l1,l2 f:v f:v … a line, counted from 0 or from 1"
ENDINGS = (".libsvm", ".svm", ".svmlight")
LABELS = re.compile(r"\d+(,\d+)*")
LOOKED_AT = 20
LINE = re.compile(r"(\d+(,\d+)*\s+)?\d+:[-+.\deE]+(\s+\d+:[-+.\deE]+)*")


def matches(path: Path) -> bool:
    """Whether a file, or those of a folder, are of this format."""
    return bool(libsvm_files(path))


def libsvm_files(path: Path) -> dict[str, Path]:
    """Files of this format in a folder, or the file itself as ``train``."""
    if path.is_file():
        return {"train": path} if plain_name(path).endswith(ENDINGS) or looks_so(path) else {}
    endings = (*ENDINGS, ".txt")
    found = {name: find_file(path, *(name + ending for ending in endings)) for name in SPLITS}
    return if_any_fits(found, lambda file: bool(libsvm_files(file)))


def looks_so(path: Path) -> bool:
    """Whether the first lines are sparse text; a line may have labels alone."""
    lines = [line.strip() for line in first_lines(path, LOOKED_AT)]
    lines = [line for line in lines if line]
    return any(map(LINE.fullmatch, lines)) and all(
        LINE.fullmatch(line) or LABELS.fullmatch(line) for line in lines
    )


def read(path: Path, _: Columns) -> Dataset:
    """All splits that are there."""
    made = Dataset(
        NAME, {name: read_libsvm(file) for name, file in libsvm_files(path).items()}
    ).same_width()
    return with_label_names(made, path if path.is_dir() else path.parent, exactly=False)


def read_libsvm(path: Path) -> Split:
    """Features and labels of one file."""
    rows = without_empty(read_rows(path, with_labels=True, header=False))
    if not rows.label_ends.size:
        raise TreetopError(f"{path}: empty file")
    return Split(None, None, features_in(path, rows), labels_in(path, rows))


def without_empty(rows: Rows) -> Rows:
    """Without blank lines, which are no documents here."""
    sizes = np.diff(rows.label_ends, prepend=0) + np.diff(rows.feature_ends, prepend=0)
    kept = sizes > 0
    return rows._replace(label_ends=rows.label_ends[kept], feature_ends=rows.feature_ends[kept])


def write(dataset: Dataset, folder: Path) -> None:
    """A file for each split, and the labels' names."""
    dataset = dataset.with_matrices()
    check_characters([dataset.label_names or []], NAME, "\n\r")
    for name, split in dataset.splits.items():
        write_lines(folder / f"{name}.libsvm", sparse_lines(sparse_features_of(split, NAME), split.Y))
    write_lines(folder / NAMES[0], dataset.label_names or [])
