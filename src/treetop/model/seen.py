"""Which documents a model was trained on, by their hashes, so that an evaluation on them is noticed.

Of many documents only those with the smallest hashes are kept, which are a random sample: another
document is compared if its hash is small enough, so a share of common documents is estimated well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Any

import numpy as np
import scipy.sparse as sp

from treetop.errors import TreetopError
from treetop.features.given import TextsWithFeatures
from treetop.features.hybrid import Features, canonical
from treetop.runtime.checking import Column, check_arrays
from treetop.runtime.texts import StoredTexts

KEPT = 1 << 16
# Hashes have 63 bits: they are saved as int64 and never negative.
BITS = (1 << 63) - 1
COLUMNS = {
    "hashes": Column("int64", ("documents",), least=0),
    "limit": Column("int64", ("1",), least=0),
}


class SeenDocuments:
    """Hashes of training documents: all those up to a limit."""

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        self.arrays = arrays

    @classmethod
    def of(cls, hashes: Iterable[int]) -> SeenDocuments:
        """Keep the smallest of the hashes of all documents."""
        distinct = np.unique(np.fromiter(hashes, np.int64))
        kept = distinct[:KEPT]
        limit = int(kept[-1]) if kept.size < distinct.size else BITS
        return cls({"hashes": kept, "limit": np.array([limit], np.int64)})

    @classmethod
    def from_arrays(
        cls, arrays: dict[str, np.ndarray], widths: tuple[int, int], labels: int
    ) -> SeenDocuments:
        """Hashes of a file, which may be from a stranger."""
        checked = check_arrays(arrays, COLUMNS, {})
        if checked["hashes"].size > KEPT:
            raise TreetopError(f"hashes has more than {KEPT:,} entries")
        return cls(checked)

    def common(self, hashes: Iterable[int]) -> tuple[int, int]:
        """Of the documents that can be compared, the number that was trained on; and their number."""
        given = np.fromiter(hashes, np.int64)
        compared = given[given <= self.arrays["limit"][0]]
        return int(np.isin(compared, self.arrays["hashes"]).sum()), compared.size


def hash_of(content: bytes) -> int:
    """A hash of 63 bits."""
    return int.from_bytes(blake2b(content, digest_size=8).digest(), "little") & BITS


def hash_of_text(text: str) -> int:
    """The hash of a text; line breaks count as spaces, which some formats make of them."""
    plain = text.replace("\r\n", " ").replace("\n", " ").strip()
    return hash_of(plain.encode("utf-8", "surrogatepass"))


def hashes_of_rows(matrix: object) -> Iterator[int]:
    """The hash of each row of a matrix of features, sparse or dense; of both halves, the sparse one."""
    if isinstance(matrix, Features):
        matrix = matrix.sparse if matrix.widths[0] else sp.csr_matrix(matrix.dense)
    rows = canonical(matrix)
    for start, end in zip(rows.indptr[:-1].tolist(), rows.indptr[1:].tolist(), strict=True):
        yield hash_of(rows.indices[start:end].tobytes() + rows.data[start:end].tobytes())


def hashes_of(documents: object) -> Iterable[int]:
    """The hashes of texts, with or without precomputed features, or of the rows of a matrix."""
    if isinstance(documents, TextsWithFeatures):
        documents = documents.texts
    if isinstance(documents, list | StoredTexts):
        return map(hash_of_text, documents)
    return hashes_of_rows(documents)


class Watched:
    """Texts that are hashed while they are read, once."""

    def __init__(self, texts: Iterable[Any]) -> None:
        self.texts, self.hashes = texts, list[int]()

    def __iter__(self) -> Iterator[Any]:
        for text in self.texts:
            if isinstance(text, str):  # anything else is an error, which the reader reports
                self.hashes.append(hash_of_text(text))
            yield text
