"""Names of precomputed features, which explanations show instead of numbers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from treetop.errors import TreetopError
from treetop.features.words.tokens import chain_names, check_name_ends
from treetop.runtime.checking import Column, check_arrays

COLUMNS = {
    "text": Column("uint8", ("characters",)),
    "text_ends": Column("int64", ("features",), least=0),
}


class FeatureNames:
    """A name per column of the features."""

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        self.arrays = arrays

    @classmethod
    def of(cls, names: Iterable[Any], columns: int) -> FeatureNames:
        """The names that `fit` was given; raise unless there is one per column."""
        listed = list(names)
        if len(listed) != columns:
            raise TreetopError(f"feature_names has {len(listed):,} names for {columns:,} features")
        buffer, ends = chain_names(map(str, listed))
        return cls({"text": buffer, "text_ends": ends})

    @classmethod
    def from_arrays(
        cls, arrays: dict[str, np.ndarray], widths: tuple[int, int], labels: int
    ) -> FeatureNames:
        """Names of a file, which may be from a stranger; `widths` are those of the features."""
        checked = check_arrays(arrays, COLUMNS, {})
        if checked["text_ends"].size not in (widths[0], sum(widths)):
            raise TreetopError("text_ends must have one entry per feature")
        check_name_ends(checked["text_ends"], checked["text"])
        return cls(checked)

    def name_of(self, feature: int) -> str:
        """The name of a column."""
        ends = self.arrays["text_ends"]
        start = int(ends[feature - 1]) if feature else 0
        return self.arrays["text"][start : int(ends[feature])].tobytes().decode("utf-8", "replace")

    def listed(self) -> tuple[str, ...]:
        """All names, in the order of the columns."""
        return tuple(map(self.name_of, range(self.arrays["text_ends"].size)))
