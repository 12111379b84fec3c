"""Read a file, a folder or a frame with the reader of its format, which is detected."""

from __future__ import annotations

from pathlib import Path

from treetop.data import frames, textlines
from treetop.data.dataset import Columns, Dataset
from treetop.data.files import open_bytes, read_block
from treetop.data.formats import FORMATS
from treetop.errors import TreetopError


def open_data(
    data: object, text_column: str | None = None, labels_column: str | None = None
) -> Dataset:
    """Read a data set in any supported format.

    Parameters
    ----------
    data : str, Path or frame
        A file or folder, or a table in memory: pandas, polars, Arrow, a dictionary of lists.
    text_column, labels_column : str, optional
        Names of the columns of a table; by default they are chosen by name.

    Returns
    -------
    Dataset
        Its splits, and in `detected` the format that was recognized.
    """
    columns = Columns(text_column, labels_column)
    if not isinstance(data, str | Path):
        if frames.is_frame(data):
            return frames.read_frames(data, columns)
        raise TreetopError(f"data is of type {type(data).__name__}: give a path or a data frame")
    path = Path(data)
    if not path.exists():
        raise TreetopError(f"{path}: no such file or folder")
    if path.is_file():
        with open_bytes(path) as file:
            if not read_block(file, path, 1, size=1):
                raise TreetopError(f"{path}: empty file: add at least one document")
    for form in (textlines, *FORMATS) if textlines.is_certain(path) else FORMATS:
        if form.matches(path):
            dataset: Dataset = form.read(path, columns)
            return dataset
    raise TreetopError(f"{path}: format not recognized: `treetop data formats` lists the known ones")
