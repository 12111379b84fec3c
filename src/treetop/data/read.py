"""Which reader a file or folder needs."""

from __future__ import annotations

from pathlib import Path

from treetop.data import pecos, tables, textlines, xmlrepo
from treetop.data.dataset import Dataset
from treetop.data.files import open_bytes, plain_name
from treetop.errors import TreetopError

KNOWN = (
    "a folder with train.txt and train.labels, a folder or file in CSV, TSV or JSONL, "
    "XMLRepo sparse text, or a PECOS folder with X.trn.npz and Y.trn.npz"
)


def open_data(
    path: str | Path, text_column: str | None = None, labels_column: str | None = None
) -> Dataset:
    """Read a data set in any supported format."""
    path = Path(path)
    if not path.exists():
        raise TreetopError(f"{path}: no such file or folder")
    if path.is_file():
        with open_bytes(path) as file:
            if not file.read(1):
                raise TreetopError(f"{path}: empty file")
    if xmlrepo.matches(path):
        return xmlrepo.read(path)
    if pecos.matches(path):
        return pecos.read(path)
    if tables.matches(path):
        return tables.read(path, text_column, labels_column)
    if textlines.matches(path):
        return textlines.read(path)
    if path.is_file() and plain_name(path).endswith(".txt"):
        labels = path.with_name(path.name.replace(".txt", ".labels"))
        return Dataset(
            "text lines",
            {"train": textlines.read_split(path, labels if labels.is_file() else None)},
        )
    raise TreetopError(f"{path}: format not recognised. Known are: {KNOWN}")
