"""Sparse text, ``l1,l2 f:v f:v …`` a line: what XMLRepo's and libsvm's files have in common."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from treetop.data.files import blocks_of, open_bytes, read_block
from treetop.errors import TreetopError
from treetop.kernels import pairs
from treetop.runtime import parallel

REASONS = {
    pairs.SHAPE: "expected {form}",
    pairs.NUMBER: "a value is NaN, infinity or no number",
    pairs.RANGE: "a number above 2,147,483,647",
}
NEWLINE, COMMA, COLON = b"\n,:"
LONGEST_LOOK = 1 << 20


class Rows(NamedTuple):
    """Lines as two ragged arrays: where each line ends, numbers, and values of the features."""

    labels: np.ndarray
    label_ends: np.ndarray
    features: np.ndarray
    values: np.ndarray
    feature_ends: np.ndarray


def read_rows(path: Path, with_labels: bool, header: bool, threads: int | None = None) -> Rows:
    """All lines of a file, after its header if it has one."""
    count = parallel.thread_count(threads)
    form = "l1,l2 f:v f:v …" if with_labels else "f:v f:v …"
    blocks = without_header(blocks_of(path)) if header else blocks_of(path)
    made: list[Rows] = []
    while some := list(islice(blocks, 2 * count)):
        made += parallel.run(lambda block, _: parse_block(path, *block, with_labels, form), some, count)
    return join(made)


def without_header(blocks: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """Blocks without the first line of the first."""
    for number, block in blocks:
        if number > 1:
            yield number, block
        elif rest := block[block.find(b"\n") + 1 :] if b"\n" in block else b"":
            yield 2, rest


def parse_block(path: Path, number: int, block: bytes, with_labels: bool, form: str) -> Rows:
    """Some lines; `number` is that of the first."""
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
    """Blocks one after the other."""
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
    """X of what was read; `width` is what the file's header allows, None: as wide as needed."""
    return sparse_matrix(path, (rows.values, rows.features, rows.feature_ends), width, what)


def labels_in(path: Path, rows: Rows, width: int | None = None) -> sp.csr_matrix:
    """Y of the label numbers; one given twice counts once."""
    ones = np.ones(rows.labels.size, np.float32)
    Y = sparse_matrix(path, (ones, rows.labels, rows.label_ends), width, "label")
    Y.data[:] = 1.0
    return Y


def sparse_matrix(
    path: Path, cells: tuple[np.ndarray, np.ndarray, np.ndarray], width: int | None, what: str
) -> sp.csr_matrix:
    """CSR of values, columns, and where each row ends; a column beyond the width is an error."""
    values, ids, ends = cells
    largest = int(ids.max()) if ids.size else -1
    if width is not None and largest >= width:
        wrong = int(np.flatnonzero(ids >= width)[0])
        line = int(np.searchsorted(ends, wrong, side="right")) + 2  # the header is the first
        raise TreetopError(f"{path}:{line}: {what} {ids[wrong]}: the header allows 0 to {width - 1}")
    shape = (ends.size, largest + 1 if width is None else width)
    matrix = sp.csr_matrix((values, ids, np.concatenate([[0], ends])), shape=shape)
    matrix.sum_duplicates()
    return matrix


def first_lines(path: Path, count: int = 1) -> list[str]:
    """The first lines of a file, of a very long one its beginning; none if it is no readable text."""
    try:
        with open_bytes(path) as file:
            start = read_block(file, path, 1, LONGEST_LOOK)
    except TreetopError:  # whoever reads the file says what is wrong with it
        return []
    whole, _, rest = start.rpartition(b"\n")
    if len(start) < LONGEST_LOOK:
        whole = start
    elif not whole:
        whole = rest.rpartition(b" ")[0]
    return whole.decode("utf-8", "ignore").removeprefix("\ufeff").split("\n")[:count]


def first_line(path: Path) -> str:
    """The first line, without blanks around it."""
    return (first_lines(path) or [""])[0].strip()


def sparse_lines(features: sp.csr_matrix, labels: sp.csr_matrix | None) -> Iterator[str]:
    """Lines of sparse text; values are written so that they are read back the same."""
    for row in range(features.shape[0]):
        a, b = features.indptr[row : row + 2]
        words = [
            f"{column}:{value!r}"
            for column, value in zip(
                features.indices[a:b].tolist(), as_short(features.data[a:b]), strict=True
            )
        ]
        if labels is not None:
            a, b = labels.indptr[row : row + 2]
            words.insert(0, ",".join(map(str, labels.indices[a:b].tolist())))
        yield " ".join(words)


def as_short(values: np.ndarray) -> list[float]:
    """The shortest decimal numbers that become the same float32 again."""
    return [float(str(value)) for value in np.asarray(values, np.float32)]
