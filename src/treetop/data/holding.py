"""What a format cannot hold: said before anything is written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import scipy.sparse as sp

from treetop.data.dataset import Split
from treetop.errors import TreetopError


def texts_of(split: Split, form: str) -> Sequence[str]:
    """Texts of a split, for a format that holds nothing else."""
    if split.texts is None:
        raise TreetopError(f"{form} holds texts, and this data has features only")
    return split.texts


def sparse_features_of(split: Split, form: str) -> sp.csr_matrix:
    """Features of a split, for a format that holds nothing else."""
    if split.X is None:
        raise TreetopError(f"{form} holds features, and this data has texts: train on them directly")
    return sp.csr_matrix(split.X)


def one_line(text: str) -> str:
    """A text with a space for every line break, as formats with a document a line need it."""
    if "\n" in text or "\r" in text:
        return " ".join(text.splitlines())
    return text


def lines_of_text(split: Split, form: str) -> Iterable[str]:
    """Texts, a line each."""
    return (one_line(text) for text in texts_of(split, form))


def labels_of(split: Split, names: list[str] | None, form: str) -> list[list[str]]:
    """Names of labels, for a format that cannot do without."""
    if not split.has_labels:
        raise TreetopError(f"{form} holds labels, and this data has none")
    return split.named_labels(names)


def check_characters(lines: Iterable[Iterable[str]], form: str, forbidden: str) -> None:
    """Raise if a label's name holds a character that separates labels in this format."""
    for name in {name for line in lines for name in line}:
        for character in forbidden:
            if character in name:
                raise TreetopError(
                    f"{form} cannot hold the label {name!r}: it contains {character!r}. "
                    "Choose another format, such as jsonl"
                )
