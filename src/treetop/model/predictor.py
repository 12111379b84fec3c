"""The interface of everything that predicts: one model or an ensemble of several."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from treetop.errors import TreetopError
from treetop.labels.vocabulary import Vocabulary
from treetop.model.seen import SeenDocuments
from treetop.model.thresholds import Thresholds
from treetop.runtime import Runtime

# The runtime of calls that do not give one.
HERE = Runtime()


class Predictor(Protocol):
    """The interface for serving, compressing, explaining and exporting: one model or an ensemble.

    The value that `features` returns is opaque: only the same predictor can use it.
    """

    @property
    def kind(self) -> str: ...  # noqa: D102
    @property
    def classes(self) -> np.ndarray: ...  # noqa: D102
    @property
    def vocabulary(self) -> Vocabulary: ...  # noqa: D102
    @property
    def label_counts(self) -> np.ndarray: ...  # noqa: D102
    @property
    def train_documents(self) -> int: ...  # noqa: D102
    @property
    def preset(self) -> str: ...  # noqa: D102
    @property
    def widths(self) -> tuple[int, int]: ...  # noqa: D102
    @property
    def ready_columns(self) -> int | None: ...  # noqa: D102
    @property
    def seen(self) -> SeenDocuments | None: ...  # noqa: D102
    @property
    def has_encoder(self) -> bool: ...  # noqa: D102
    @property
    def reads_texts(self) -> bool: ...  # noqa: D102
    @property
    def needs_features(self) -> bool: ...  # noqa: D102
    def features(self, documents: Any, runtime: Runtime = HERE) -> Any:
        """Compute features of texts, with or without precomputed ones, or check a feature matrix."""

    def select(self, features: Any, rows: np.ndarray) -> Any:
        """Select features of some documents by their row numbers."""

    def scores_from(
        self,
        features: Any,
        k: int,
        runtime: Runtime = HERE,
        *,
        beam: int | None = None,
        allow: Iterable[object] | None = None,
        candidates: sp.csr_matrix | None = None,
        raw: bool = False,
    ) -> sp.csr_matrix:
        """Score the best `k` labels of each document: CSR (N, L), best first in each row.

        `raw` gives the raw scores of `candidates`, as an ensemble may combine them.
        """

    @property
    def calibrated(self) -> bool: ...  # noqa: D102
    @property
    def thresholds(self) -> Thresholds | None: ...  # noqa: D102

    def lengths(self, features: Any) -> np.ndarray:
        """The length of each document: its number of sparse features, int64."""

    def probabilities(self, features: Any, scores: sp.csr_matrix) -> sp.csr_matrix:
        """The probability of each of the scores of these documents: CSR (N, L) in the same order.

        It does not rise along a row. A model that is not calibrated raises.
        """

    def describe(self) -> dict[str, Any]:
        """Describe the model in plain values, for config.json, the model card and the service."""

    def open_encoders(self, runtime: Runtime = HERE) -> None:
        """Open encoders now instead of when the first text is predicted."""


def check_limits(k: int, beam: int | None) -> None:
    """Raise unless the number of labels per document and the beam width, if given, are at least 1."""
    for name, value in (("k", k), ("beam", 1 if beam is None else beam)):
        if isinstance(value, bool) or not isinstance(value, Integral):
            raise TreetopError(f"{name} is {value!r}: it must be a whole number")
        if value < 1:
            raise TreetopError(f"{name} is {value}: it must be at least 1")
