"""Training documents that a model keeps, so that explanations can show similar ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from treetop.errors import TreetopError
from treetop.features.hybrid import Features
from treetop.features.words.tokens import chain_names, check_name_ends
from treetop.labels.pifa import keep_largest
from treetop.ranking.combining import largest
from treetop.runtime.checking import Column, check_arrays
from treetop.runtime.tables import beginning

# Largest features that are kept per document.
FEATURES = 64
COLUMNS = {
    "indptr": Column("int64", ("documents+1",), ends_at="nonzeros"),
    "indices": Column("int32", ("nonzeros",), least=0, below="features"),
    "data": Column("float32", ("nonzeros",)),
    "columns": Column("int64", ("1",)),
    "dense": Column("float32", ("documents", "dense")),
    "text": Column("uint8", ("characters",)),
    "text_ends": Column("int64", ("texts",), least=0),
    "label_ptr": Column("int64", ("documents+1",), ends_at="pairs"),
    "labels": Column("int32", ("pairs",), least=0, below="all_labels"),
}


class KeptDocuments:
    """Beginnings, labels and largest features of the training documents."""

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        self.arrays = arrays
        pointers, columns = arrays["indptr"], int(arrays["columns"][0])
        parts = (arrays["data"], arrays["indices"], pointers)
        self.sparse = sp.csr_matrix(parts, shape=(pointers.size - 1, columns), copy=False)

    @classmethod
    def from_arrays(
        cls, arrays: dict[str, np.ndarray], widths: tuple[int, int], labels: int
    ) -> KeptDocuments:
        """Documents of a file, which may be from a stranger.

        `widths` are the columns of both halves of the features.
        """
        sizes = {"features": widths[0], "dense": widths[1], "all_labels": labels}
        checked = check_arrays(arrays, COLUMNS, sizes)
        if checked["columns"][0] != widths[0]:
            raise TreetopError(f"columns is {checked['columns'][0]:,} instead of {widths[0]:,}")
        if checked["text_ends"].size not in (0, sizes["documents"]):
            raise TreetopError("text_ends must have one entry per document, or none")
        check_name_ends(checked["text_ends"], checked["text"])
        return cls(checked)

    @classmethod
    def of(
        cls, X: Features, Y: sp.csr_matrix, texts: Sequence[str] | None, threads: int
    ) -> KeptDocuments:
        """Keep the beginnings, labels and largest features of training documents."""
        kept = keep_largest(X, FEATURES, threads).sparse
        shown = [] if texts is None else [beginning(text) for text in texts]
        buffer, ends = chain_names(shown)
        return cls(
            {
                "indptr": kept.indptr.astype(np.int64),
                "indices": kept.indices.astype(np.int32),
                "data": kept.data.astype(np.float32),
                "columns": np.array([kept.shape[1]]),
                "dense": X.dense,
                "text": buffer,
                "text_ends": ends,
                "label_ptr": Y.indptr.astype(np.int64),
                "labels": Y.indices.astype(np.int32),
            }
        )

    def nearest(self, X: Features, count: int) -> list[tuple[int, float]]:
        """Find the `count` documents most similar to the one in `X`, with the inner products."""
        query = np.zeros(X.sparse.shape[1], np.float32)
        query[X.sparse.indices] = X.sparse.data
        with np.errstate(over="ignore", invalid="ignore"):  # a damaged file may hold huge values
            similarity = self.sparse @ query
            if X.dense.shape[1]:
                similarity = similarity + self.arrays["dense"] @ X.dense[0]
        similarity = np.nan_to_num(similarity)
        best = largest(similarity, count)
        return [(int(document), float(similarity[document])) for document in best]

    def text_of(self, document: int) -> str:
        """Return the beginning of a document; empty if the model was trained on a feature matrix."""
        ends = self.arrays["text_ends"]
        if not ends.size:
            return ""
        start = int(ends[document - 1]) if document else 0
        return self.arrays["text"][start : int(ends[document])].tobytes().decode("utf-8", "replace")

    def labels_of(self, document: int) -> list[int]:
        """Return the label numbers of a document."""
        first, last = self.arrays["label_ptr"][document : document + 2].tolist()
        return [int(label) for label in self.arrays["labels"][first:last]]
