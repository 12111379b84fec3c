"""How a data set is to be read: the options of every command and function that reads data."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from treetop.errors import TreetopError
from treetop.fields import check_fields, documented

# Separators that are hard to type or to see in a shell, by the names that stand for them.
SEPARATOR_NAMES = {"tab": "\t", "space": " ", "none": ""}

# Which precomputed features to use: those that are found, or none; anything else is their place.
ANY_FEATURES, NO_FEATURES = "auto", "none"


def check_encoding(name: str) -> None:
    """Raise unless Python knows a text encoding of this name."""
    try:
        known = codecs.lookup(name)._is_text_encoding
    except (LookupError, ValueError):
        known = False
    if not known:
        raise TreetopError(f"encoding {name!r} is not known: give one such as utf-8, cp1252 or utf-16")


def check_separator(separator: str) -> None:
    """Raise if labels cannot be divided at `separator`."""
    if not separator:
        raise TreetopError("label_separator is empty: give a character, tab, space or none")


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """How a data set is to be read; by default everything is detected."""

    text_column: tuple[str, ...] = documented(
        (),
        "Column of a table that holds the texts, guessed from its name by default; several are joined.",
        section="Data",
        metavar="COLUMN",
    )
    labels_column: str | None = documented(
        None,
        "Column of a table that holds the labels; guessed from its name by default.",
        section="Data",
        metavar="COLUMN",
    )
    label_separator: str | None = documented(
        None,
        "What separates the labels in a field: a character, tab, space, or none for one label per "
        "field; detected by default.",
        section="Data",
        metavar="CHARACTER",
        parse=check_separator,
    )
    encoding: str | None = documented(
        None,
        "Encoding of text files; UTF-8, UTF-16 and cp1252 are detected.",
        section="Data",
        metavar="NAME",
        parse=check_encoding,
    )
    merge_duplicates: bool = documented(
        False,
        "Merge labels of the same name in a file of label names; by default the second gets a number.",
        section="Data",
    )
    features: str = documented(
        ANY_FEATURES,
        "Precomputed features of the texts, used in place of TF-IDF: a folder with X.trn.npz and "
        "X.tst.npz, or a single .npz file; none uses the texts alone. By default (auto), those that "
        "are found in archives of PECOS and AttentionXML, such as tfidf-attnxml.",
        section="Data",
        metavar="auto|none|PATH",
    )
    keep_columns: bool = False  # also keep the columns that hold neither texts nor labels
    with_labels: bool = True  # or read no column of labels from tables

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def separator(self) -> str | None:
        """The separator of labels itself, "" for one label per field; None if it is to be detected."""
        if self.label_separator is None:
            return None
        return SEPARATOR_NAMES.get(self.label_separator, self.label_separator)
