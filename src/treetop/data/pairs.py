"""Sparse text, one ``l1,l2 f:v f:v …`` per line, as in files of XMLRepo and libsvm."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from treetop.data.files import blocks_of
from treetop.data.sizes import check_columns
from treetop.errors import TreetopError
from treetop.kernels import pairs
from treetop.runtime import parallel

REASONS = {
    pairs.SHAPE: "expected {form}",
    pairs.NUMBER: "a value is NaN, infinite or not a number",
    pairs.RANGE: "a number is above 2,147,483,647",
}
NEWLINE, COMMA, COLON = b"\n,:"


class Rows(NamedTuple):
    """Lines of sparse text as ragged arrays.

    `labels` and `features` are int32 numbers, `values` the float32 values of the features.
    `label_ends` and `feature_ends`, int64 of shape (N,), say where the entries of each line end.
    """

    labels: np.ndarray
    label_ends: np.ndarray
    features: np.ndarray
    values: np.ndarray
    feature_ends: np.ndarray


def read_rows(path: Path, with_labels: bool, header: bool, threads: int | None = None) -> Rows:
    """Read all lines of a file in parallel, after its header if it has one."""
    count = parallel.thread_count(threads)
    form = "l1,l2 f:v f:v …" if with_labels else "f:v f:v …"
    blocks = without_header(blocks_of(path)) if header else blocks_of(path)
    parts: list[Rows] = []
    while batch := list(islice(blocks, 2 * count)):
        parts += parallel.run(
            lambda block, _: parse_block(path, *block, with_labels, form), batch, count
        )
    return join(parts)


def without_header(blocks: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """Yield blocks without the first line of the file."""
    for number, block in blocks:
        if number > 1:
            yield number, block
        elif rest := block[block.find(b"\n") + 1 :] if b"\n" in block else b"":
            yield 2, rest


def parse_block(path: Path, number: int, block: bytes, with_labels: bool, form: str) -> Rows:
    """Parse a block of lines; `number` is the line number of the first."""
    text = np.frombuffer(block if block.endswith(b"\n") else block + b"\n", np.uint8)
    sizes = {byte: int(np.count_nonzero(text == byte)) for byte in (NEWLINE, COMMA, COLON)}
    lines, most_labels = sizes[NEWLINE], sizes[NEWLINE] + sizes[COMMA] if with_labels else 0
    rows = Rows(
        np.empty(most_labels, np.int32),
        np.empty(lines, np.int64),
        np.empty(sizes[COLON], np.int32),
        np.empty(sizes[COLON], np.float32),
        np.empty(lines, np.int64),
    )
    wrong = pairs.parse(text, np.uint8(with_labels), *rows)
    if wrong >= 0:
        line, reason = divmod(wrong, 4)
        raise TreetopError(f"{path}:{number + line}: {REASONS[reason].format(form=form)}")
    used = int(rows.label_ends[-1]) if lines else 0
    return rows._replace(labels=rows.labels[:used])


def join(parts: list[Rows]) -> Rows:
    """Concatenate the rows of consecutive blocks."""
    if not parts:
        nothing = np.empty(0, np.int64)
        return Rows(nothing, nothing, nothing, nothing.astype(np.float32), nothing)
    label_starts = np.cumsum([0, *(part.labels.size for part in parts[:-1])])
    feature_starts = np.cumsum([0, *(part.features.size for part in parts[:-1])])
    return Rows(
        np.concatenate([part.labels for part in parts]),
        np.concatenate([p.label_ends + s for p, s in zip(parts, label_starts, strict=True)]),
        np.concatenate([part.features for part in parts]),
        np.concatenate([part.values for part in parts]),
        np.concatenate([p.feature_ends + s for p, s in zip(parts, feature_starts, strict=True)]),
    )


def features_in(
    path: Path, rows: Rows, width: int | None = None, what: str = "feature"
) -> sp.csr_matrix:
    """X of the rows; `width` is the header's number of features, None: as wide as needed."""
    return sparse_matrix(path, (rows.values, rows.features, rows.feature_ends), width, what)


def labels_in(path: Path, rows: Rows, width: int | None = None) -> sp.csr_matrix:
    """Y of the rows, 1 for every label however often it is listed."""
    ones = np.ones(rows.labels.size, np.float32)
    Y = sparse_matrix(path, (ones, rows.labels, rows.label_ends), width, "label")
    Y.data[:] = 1.0
    return Y


def sparse_matrix(
    path: Path, cells: tuple[np.ndarray, np.ndarray, np.ndarray], width: int | None, what: str
) -> sp.csr_matrix:
    """CSR matrix of values, columns and row ends; a column beyond the width is an error."""
    values, ids, ends = cells
    largest = int(ids.max()) if ids.size else -1
    if width is not None and largest >= width:
        wrong = int(np.flatnonzero(ids >= width)[0])
        line = int(np.searchsorted(ends, wrong, side="right")) + 2  # the header is the first
        raise TreetopError(f"{path}:{line}: {what} {ids[wrong]}: the header allows 0 to {width - 1}")
    columns = largest + 1 if width is None else width
    check_columns(path, columns, ids.size + ends.size, f"{what}s")
    shape = (ends.size, columns)
    matrix = sp.csr_matrix((values, ids, np.concatenate([[0], ends])), shape=shape)
    matrix.sum_duplicates()
    return matrix


def sparse_lines(features: sp.csr_matrix, labels: sp.csr_matrix | None) -> Iterator[str]:
    """Yield lines of sparse text, whose values are read back as the same float32."""
    for row in range(features.shape[0]):
        start, end = features.indptr[row : row + 2]
        columns, values = features.indices[start:end].tolist(), as_short(features.data[start:end])
        words = [f"{column}:{value!r}" for column, value in zip(columns, values, strict=True)]
        if labels is not None:
            start, end = labels.indptr[row : row + 2]
            words.insert(0, ",".join(map(str, labels.indices[start:end].tolist())))
        yield " ".join(words)


def as_short(values: np.ndarray) -> list[float]:
    """Floats with the shortest decimal notation that gives the same float32."""
    return [float(str(value)) for value in np.asarray(values, np.float32)]
