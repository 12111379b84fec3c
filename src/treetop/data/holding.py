"""Checks that a format can hold the data, made before anything is written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import scipy.sparse as sp

from treetop.data.dataset import Split
from treetop.errors import TreetopError


def texts_of(split: Split, form: str) -> Sequence[str]:
    """Texts of a split, for a format without features."""
    if split.texts is None:
        raise TreetopError(f"{form} stores texts, but this data has features only")
    return split.texts


def sparse_features_of(split: Split, form: str) -> sp.csr_matrix:
    """Features of a split, for a format without texts."""
    if split.X is None:
        raise TreetopError(
            f"{form} stores features, but this data has texts: choose another format, such as jsonl"
        )
    return sp.csr_matrix(split.X)


def one_line(text: str) -> str:
    """A text with its line breaks replaced by spaces, for formats with one document per line."""
    if "\n" in text or "\r" in text:
        return " ".join(text.splitlines())
    return text


def lines_of_text(split: Split, form: str) -> Iterable[str]:
    """Texts of a split without line breaks."""
    return (one_line(text) for text in texts_of(split, form))


def labels_of(split: Split, names: list[str] | None, form: str) -> list[list[str]]:
    """Label names of a split, for a format that requires labels."""
    if not split.has_labels:
        raise TreetopError(f"{form} requires labels, but this data has none")
    return split.named_labels(names)


def label_matrix_of(split: Split, name: str, form: str) -> sp.csr_matrix:
    """Label matrix of the split `name`, for a format that requires labels."""
    if split.Y is None:
        raise TreetopError(f"{form} requires labels, but the split {name} has none")
    return split.Y


def check_characters(lines: Iterable[Iterable[str]], form: str, forbidden: str) -> None:
    """Raise if a label name contains a character that separates labels in this format."""
    for name in {name for line in lines for name in line}:
        for character in forbidden:
            if character in name:
                raise TreetopError(
                    f"{form} cannot store the label {name!r}, which contains {character!r}: "
                    "choose another format, such as jsonl"
                )
