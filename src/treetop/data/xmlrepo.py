"""The XML Repository's sparse text: a header ``N D L``, then ``l1,l2 f:v f:v …`` a document."""

from __future__ import annotations

from pathlib import Path

from treetop.data.dataset import Columns, Dataset, Split, check_label_names
from treetop.data.files import find_file, if_any_fits, lines_of, write_lines
from treetop.data.holding import check_characters, sparse_features_of
from treetop.data.pairs import features_in, first_line, labels_in, read_rows, sparse_lines
from treetop.errors import TreetopError

NAME = "xmlrepo"
ABOUT = "XMLRepo sparse text: a header N D L, then l1,l2 f:v f:v … a document"
FILES = {
    "train": ("train.txt", "train_data.txt"),
    "dev": ("dev.txt",),
    "test": ("test.txt", "test_data.txt"),
}
NAMES = ("Yf.txt", "label_names.txt", "labels.txt")


def numbers(line: str, count: int) -> tuple[int, ...] | None:
    """`count` numbers of a header, if the line is one."""
    parts = line.split()
    if len(parts) == count and all(part.isdecimal() for part in parts):
        return tuple(map(int, parts))
    return None


def xmlrepo_files(path: Path) -> dict[str, Path]:
    """Files of this format in a folder, or the file itself as ``train``."""
    if path.is_file():
        return {"train": path} if numbers(first_line(path), 3) else {}
    found = {name: find_file(path, *stems) for name, stems in FILES.items()}
    return if_any_fits(found, lambda file: numbers(first_line(file), 3) is not None)


def matches(path: Path) -> bool:
    """Whether a file or folder is of this format."""
    return bool(xmlrepo_files(path))


def read(path: Path, _: Columns) -> Dataset:
    """All splits that are there."""
    made = Dataset(
        NAME, {name: read_xmlrepo(file) for name, file in xmlrepo_files(path).items()}
    ).same_width()
    return with_label_names(made, path if path.is_dir() else path.parent)


def with_label_names(dataset: Dataset, folder: Path, exactly: bool = True) -> Dataset:
    """The same with names of labels, if the folder has a file of them.

    Not `exactly`: there may be more names than labels that occur.
    """
    file = find_file(folder, *NAMES)
    if file is None:
        return dataset
    names = list(lines_of(file))
    width = max((s.Y.shape[1] for s in dataset.splits.values() if s.Y is not None), default=0)
    check_label_names(file, names, width if exactly else max(width, len(names)))
    return Dataset(dataset.format, dataset.splits, names).same_width()


def read_xmlrepo(path: Path) -> Split:
    """Features and labels of one file."""
    header = numbers(first_line(path), 3)
    if header is None:
        raise TreetopError(f"{path}:1: the header must be three numbers: documents, features, labels")
    documents, features, labels = header
    rows = read_rows(path, with_labels=True, header=True)
    check_documents(path, rows.label_ends.size, documents)
    return Split(None, None, features_in(path, rows, features), labels_in(path, rows, labels))


def check_documents(path: Path, found: int, said: int) -> None:
    """Raise unless there are as many lines as the header says."""
    if found != said:
        raise TreetopError(f"{path}: {found:,} documents, the header says {said:,}")


def write(dataset: Dataset, folder: Path) -> None:
    """A file for each split, and the labels' names."""
    dataset = dataset.with_matrices()
    check_characters([dataset.label_names or []], NAME, "\n\r")
    for name, split in dataset.splits.items():
        X, Y = sparse_features_of(split, NAME), split.Y
        if Y is None:
            raise TreetopError(f"{NAME} holds labels, and the split {name} has none")
        header = f"{X.shape[0]} {X.shape[1]} {Y.shape[1]}"
        write_lines(folder / f"{name}.txt", (header, *sparse_lines(X, Y)))
    write_lines(folder / NAMES[0], dataset.label_names or [])
