"""What a reader recognized: columns, delimiter, separator of labels, encoding, and its doubts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

NAMES_OF_SEPARATORS = {"\t": "tabs", " ": "spaces"}


@dataclass(frozen=True)
class Recognized:
    """How a data set was read; `warnings` are what the user should know or decide.

    `text_columns` and `labels_column` are those of a table. `delimiter` separates the columns of a CSV
    file. `separator` divides fields into labels; None if no field is divided. `encoding` is None for
    UTF-8. `files` are the files and folders that were read, `features` those of precomputed features.
    """

    text_columns: tuple[str, ...] = ()
    labels_column: str | None = None
    delimiter: str | None = None
    separator: str | None = None
    encoding: str | None = None
    files: tuple[Path, ...] = ()
    warnings: tuple[str, ...] = ()
    features: tuple[Path, ...] = ()
    labels_wanted: bool = True  # or only texts were to be read

    @property
    def detail(self) -> str:
        """What was recognized, on one line; empty if there was nothing to choose."""
        parts = []
        if self.text_columns:
            parts.append(f"texts in {' and '.join(map(repr, self.text_columns))}")
            parts += [self.labels_detail] if self.labels_wanted else []
        if self.delimiter is not None:
            parts.append(f"columns separated by {separator_name(self.delimiter)}")
        if self.encoding is not None:
            parts.append(f"encoding {self.encoding}")
        if self.features:
            names = [str(Path(file.parent.name, file.name)) for file in self.features]
            parts.append(f"texts with precomputed features in {' and '.join(names)}")
        return ", ".join(parts)

    @property
    def labels_detail(self) -> str:
        """Where the labels of a table were found, and what separates them."""
        if self.labels_column is None:
            return "no column of labels"
        if self.separator is None:
            return f"labels in {self.labels_column!r}"
        return f"labels in {self.labels_column!r} separated by {separator_name(self.separator)}"

    def to_dict(self) -> dict[str, Any]:
        """The same in plain values, for JSON."""
        return {
            "text_columns": list(self.text_columns),
            "labels_column": self.labels_column,
            "delimiter": self.delimiter,
            "label_separator": self.separator,
            "encoding": self.encoding or "utf-8",
            "features": [str(file) for file in self.features],
            "warnings": list(self.warnings),
        }


def separator_name(separator: str) -> str:
    """A separator as people write it."""
    return NAMES_OF_SEPARATORS.get(separator, repr(separator))
