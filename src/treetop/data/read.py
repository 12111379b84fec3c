"""Read a file, a folder or a frame with the reader of its format, which is detected."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from treetop.data import frames, textlines
from treetop.data.columnar import USES as FRAME_USES
from treetop.data.compression import open_bytes
from treetop.data.dataset import Dataset
from treetop.data.files import plain_name, read_block
from treetop.data.formats import FORMATS
from treetop.data.options import ANY_FEATURES, ReadOptions
from treetop.data.ready import with_ready_features
from treetop.errors import TreetopError
from treetop.fields import documented_fields
from treetop.runtime.files import check_path

# Names of files and folders that look like a split of a data set.
SPLIT_LIKE = re.compile(
    r"(train|trn|training|dev|val|valid|validate|validation|test|tst|testing)([._-].*)?"
)
# Names of matrices of features and labels.
MATRIX = re.compile(r"[xy]([._-].*)?\.npz")

# Why a format does not use an option; for others, because it is no table.
UNUSED = {"encoding": "has no other encoding", "merge_duplicates": "has no file of label names"}


def open_data(
    data: object,
    text_column: str | Sequence[str] | None = None,
    labels_column: str | None = None,
    *,
    label_separator: str | None = None,
    encoding: str | None = None,
    merge_duplicates: bool = False,
    features: str = ANY_FEATURES,
) -> Dataset:
    """Read a data set in any supported format.

    Parameters
    ----------
    data : str, Path or frame
        A file or folder, or a table in memory: pandas, polars, Arrow, a dictionary of lists.
    text_column, labels_column : str, optional
        Names of the columns of a table; by default they are chosen by name. Several columns of texts
        are joined.
    label_separator : str, optional
        What separates the labels in a field: a character, ``"tab"``, ``"space"``, or ``"none"`` for one
        label per field. By default it is detected, once for all fields.
    encoding : str, optional
        Encoding of text files; by default UTF-8, UTF-16 and cp1252 are detected.
    merge_duplicates : bool
        Whether labels of the same name in a file of label names are merged; otherwise the second is
        called ``"name (2)"``.
    features : str
        Precomputed features of the texts: ``"auto"`` reads those that are found in archives of PECOS
        and AttentionXML, ``"none"`` leaves them out; otherwise a folder or file of them.

    Returns
    -------
    Dataset
        Its splits; `detected` and `reading` say what was recognized.
    """
    columns = (text_column,) if isinstance(text_column, str) else tuple(text_column or ())
    options = ReadOptions(
        text_column=columns,
        labels_column=labels_column,
        label_separator=label_separator,
        encoding=encoding,
        merge_duplicates=merge_duplicates,
        features=features,
    )
    return read_dataset(data, options)


def read_dataset(data: object, options: ReadOptions) -> Dataset:
    """Read a data set in any supported format, as the options say."""
    if not isinstance(data, str | Path):
        if frames.is_frame(data):
            check_used(options, FRAME_USES, "a frame")
            return with_ready_features(frames.read_frames(data, options), None, options, False)
        raise TreetopError(f"data is of type {type(data).__name__}: give a path or a data frame")
    path = Path(data)
    form = format_of(path)
    check_used(options, getattr(form, "USES", ()), f"{path}: {form.NAME}")
    searched = getattr(form, "READY_FEATURES", False)
    dataset = with_ready_features(form.read(path, options), path, options, searched)
    unread = unread_splits(path, dataset.reading.files)
    if not unread:
        return dataset
    warnings = (*dataset.reading.warnings, *unread)
    return replace(dataset, reading=replace(dataset.reading, warnings=warnings))


def format_of(path: Path) -> ModuleType:
    """The module of the format of a file or folder."""
    form = recognized_format(path)
    if form is not None:
        return form
    files = sorted(child.name for child in path.iterdir()) if path.is_dir() else []
    tables = [name for name in files if recognized_format(path / name)]
    hint = "`treetop data formats` lists the known ones"
    if tables:
        hint = f"name files by split, such as train.csv, or give one, such as {path / tables[0]}"
    raise TreetopError(f"{path}: format not recognized: {hint}")


def recognized_format(path: Path) -> ModuleType | None:
    """The module of the format of a file or folder; None if it is in none of the known ones."""
    check_path(path)
    if not path.exists():
        raise TreetopError(f"{path}: no such file or folder")
    if path.is_file():
        with open_bytes(path) as file:
            if not read_block(file, path, 1, size=1):
                raise TreetopError(f"{path}: empty file: add at least one document")
    for form in (textlines, *FORMATS) if textlines.is_certain(path) else FORMATS:
        if form.matches(path):
            return form
    return None


def check_used(options: ReadOptions, used: Sequence[str], what: str) -> None:
    """Raise if an option is given that the format does not use: it would be ignored silently."""
    for name, declared in documented_fields(ReadOptions).items():
        if name == "features":  # any format with texts can have them
            continue
        if getattr(options, name) != declared.default and name not in used:
            reason = UNUSED.get(name, "has no columns of a table")
            raise TreetopError(f"{what} {reason}: leave out --{name.replace('_', '-')}")


def unread_splits(path: Path, files: Sequence[Path]) -> list[str]:
    """Warnings for files and folders that look like a split but were not read."""
    if not path.is_dir() or not files:
        return []
    read = {part for file in files for part in (file, *file.parents)}
    endings = {plain_name(file).partition(".")[2] for file in files}
    warnings = []
    for child in sorted(path.iterdir()):
        name = plain_name(child)
        belongs = name.endswith(".labels") or "label" in name or child.name.startswith(".")
        if child in read or belongs or not (SPLIT_LIKE.fullmatch(name) or MATRIX.fullmatch(name)):
            continue
        same = name.partition(".")[2] in endings
        hint = "splits are named train, dev and test" if same else "one folder holds one format"
        warnings.append(f"{child} is not read: {hint}: rename it, or give it by itself")
    return warnings
