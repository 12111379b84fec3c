"""Sparse text of the XML Repository: a header ``N D L``, then ``l1,l2 f:v f:v …`` per document."""

from __future__ import annotations

from pathlib import Path

from treetop.data.dataset import Dataset, Split
from treetop.data.files import find_file, first_line, split_files, write_lines
from treetop.data.holding import check_characters, label_matrix_of, sparse_features_of
from treetop.data.labelnames import with_names_of
from treetop.data.options import ReadOptions
from treetop.data.pairs import features_in, labels_in, read_rows, sparse_lines
from treetop.data.reading import Recognized
from treetop.errors import TreetopError

NAME = "xmlrepo"
USES = ("merge_duplicates",)
ABOUT = "XMLRepo sparse text: a header N D L, then l1,l2 f:v f:v … per document"
FILES = {
    "train": ("train.txt", "train_data.txt"),
    "dev": ("dev.txt",),
    "test": ("test.txt", "test_data.txt"),
}
NAMES = ("Yf.txt", "label_names.txt", "labels.txt")


def header_numbers(line: str, count: int) -> tuple[int, ...] | None:
    """The numbers of a line if it consists of `count` of them."""
    parts = line.split()
    if len(parts) == count and all(part.isdecimal() for part in parts):
        return tuple(map(int, parts))
    return None


def xmlrepo_files(path: Path) -> dict[str, Path]:
    """Files of this format by split."""
    return split_files(path, lambda name: FILES[name], has_header)


def has_header(path: Path) -> bool:
    """Whether the first line is a header of three numbers."""
    return header_numbers(first_line(path), 3) is not None


def matches(path: Path) -> bool:
    """Whether a file or folder is of this format."""
    return bool(xmlrepo_files(path))


def read(path: Path, options: ReadOptions) -> Dataset:
    """Read all splits."""
    files = xmlrepo_files(path)
    splits = {name: read_xmlrepo(file) for name, file in files.items()}
    dataset = Dataset(NAME, splits, reading=Recognized(files=tuple(files.values()))).same_width()
    return with_names_of(dataset, names_file(path), options)


def names_file(path: Path) -> Path | None:
    """The file of label names that belongs to a file or folder of data."""
    return find_file(path if path.is_dir() else path.parent, *NAMES)


def read_xmlrepo(path: Path) -> Split:
    """Read features and labels of one file."""
    header = header_numbers(first_line(path), 3)
    if header is None:
        raise TreetopError(f"{path}:1: the header must be three numbers: documents, features, labels")
    documents, features, labels = header
    rows = read_rows(path, with_labels=True, header=True)
    check_documents(path, rows.label_ends.size, documents)
    return Split(None, None, features_in(path, rows, features), labels_in(path, rows, labels))


def check_documents(path: Path, documents: int, announced: int) -> None:
    """Raise unless the file has as many documents as its header announces."""
    if documents != announced:
        raise TreetopError(f"{path}: {documents:,} documents, but its header announces {announced:,}")


def write(dataset: Dataset, folder: Path) -> None:
    """Write one file per split and one of label names."""
    dataset = dataset.with_matrices()
    check_characters([dataset.label_names or []], NAME, "\n\r")
    for name, split in dataset.splits.items():
        X, Y = sparse_features_of(split, NAME), label_matrix_of(split, name, NAME)
        header = f"{X.shape[0]} {X.shape[1]} {Y.shape[1]}"
        write_lines(folder / f"{name}.txt", (header, *sparse_lines(X, Y)))
    write_lines(folder / NAMES[0], dataset.label_names or [])
