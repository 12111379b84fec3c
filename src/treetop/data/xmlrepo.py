"""The XML Repository's sparse text: a header ``N D L``, then ``l1,l2 f:v f:v …`` a document."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from treetop.data.dataset import Dataset, Split
from treetop.data.files import find, lines_of
from treetop.errors import TreetopError

SPLITS = {"train": ("train.txt", "train_data.txt"), "test": ("test.txt", "test_data.txt")}


def header_of(path: Path) -> tuple[int, int, int] | None:
    """(N, D, L) if the first line is such a header."""
    try:
        parts = next(lines_of(path), "").split()
    except TreetopError:
        return None
    if len(parts) == 3 and all(part.isdigit() for part in parts):
        return int(parts[0]), int(parts[1]), int(parts[2])
    return None


def files_of(path: Path) -> dict[str, Path]:
    """Files of this format in a folder, or the file itself as ``train``."""
    if path.is_file():
        return {"train": path} if header_of(path) else {}
    found = {name: find(path, *stems) for name, stems in SPLITS.items()}
    return {name: file for name, file in found.items() if file and header_of(file)}


def matches(path: Path) -> bool:
    """Whether a file or folder is of this format."""
    return bool(files_of(path))


def read(path: Path) -> Dataset:
    """All splits that are there."""
    return Dataset("XMLRepo", {name: read_file(file) for name, file in files_of(path).items()})


def read_file(path: Path) -> Split:
    """Features and labels of one file."""
    header = header_of(path)
    if header is None:
        raise TreetopError(f"{path}:1: the header must be three numbers: documents, features, labels")
    documents, features, labels = header
    label_sizes, feature_sizes = [0], [0]
    label_ids: list[int] = []
    feature_ids: list[int] = []
    values: list[float] = []
    lines = lines_of(path)
    next(lines)
    for number, (names, pairs) in enumerate(split_lines(lines), start=2):
        try:
            label_ids.extend(map(int, names))
            for pair in pairs:
                feature, value = pair.split(":")
                feature_ids.append(int(feature))
                values.append(float(value))
        except ValueError:
            raise TreetopError(f"{path}:{number}: expected l1,l2 f:v f:v …") from None
        label_sizes.append(len(label_ids))
        feature_sizes.append(len(feature_ids))
    if len(label_sizes) - 1 != documents:
        raise TreetopError(f"{path}: {len(label_sizes) - 1:,} documents, the header says {documents:,}")
    X = matrix(path, values, feature_ids, feature_sizes, (documents, features), "feature")
    ones = np.ones(len(label_ids))
    Y = matrix(path, ones, label_ids, label_sizes, (documents, labels), "label")
    Y.data[:] = 1.0
    return Split(None, None, X, Y)


def split_lines(lines: Iterator[str]) -> Iterator[tuple[list[str], list[str]]]:
    """Label numbers and feature pairs of each line; a line may lack either."""
    for line in lines:
        first, _, rest = line.partition(" ")
        if ":" in first:
            first, rest = "", line
        yield [name for name in first.split(",") if name], rest.split()


def matrix(
    path: Path, data: object, ids: list[int], ends: list[int], shape: tuple[int, int], what: str
) -> sp.csr_matrix:
    """CSR from what was read, checked against the header."""
    indices = np.array(ids, np.int64)
    if indices.size and (indices.min() < 0 or indices.max() >= shape[1]):
        wrong = int(np.flatnonzero((indices < 0) | (indices >= shape[1]))[0])
        line = int(np.searchsorted(ends, wrong, side="right")) + 1
        raise TreetopError(
            f"{path}:{line}: {what} {indices[wrong]}: the header allows 0 to {shape[1] - 1}"
        )
    values = np.array(data, np.float32)
    if not np.isfinite(values).all():
        line = int(np.searchsorted(ends, int(np.flatnonzero(~np.isfinite(values))[0]), side="right"))
        raise TreetopError(f"{path}:{line + 1}: NaN or infinity")
    made = sp.csr_matrix((values, indices, ends), shape=shape)
    made.sum_duplicates()
    return made
