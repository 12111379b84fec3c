"""Parquet files, and Arrow folders saved by the Hugging Face library ``datasets``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from treetop.data.cells import is_missing
from treetop.data.columns import Table, choose_columns, dataset_of, joined_texts, unread_columns
from treetop.data.dataset import SPLITS, Dataset, Split
from treetop.data.holding import texts_of
from treetop.data.options import ReadOptions
from treetop.errors import TreetopError
from treetop.runtime.extras import require
from treetop.runtime.texts import TextCollector

NAME = "parquet"
USES = ("text_column", "labels_column", "label_separator")
ABOUT = "Parquet files, or a folder saved by Hugging Face datasets, with columns of texts and labels"
# Names of the validation split in other libraries.
SPLIT_ALIASES = {"validation": "dev", "valid": "dev", "val": "dev"}


def arrow() -> Any:
    """The package pyarrow, which reads and writes both."""
    return require("Parquet and Arrow files", "data", "pyarrow", "pyarrow.parquet")


def tables_of(path: Path) -> dict[str, list[Path]]:
    """Files by split: a Parquet file, the Parquet files of a folder, or saved Arrow files."""
    if path.is_file():
        return {"train": [path]} if path.suffix == ".parquet" else {}
    if (path / "state.json").is_file():
        return {"train": arrow_files(path)}
    if (path / "dataset_dict.json").is_file():
        folders = (folder for folder in sorted(path.iterdir()) if (folder / "state.json").is_file())
        found = {SPLIT_ALIASES.get(folder.name, folder.name): arrow_files(folder) for folder in folders}
        return {name: found[name] for name in dict.fromkeys((*SPLITS, *found)) if name in found}
    listed: dict[str, list[Path]] = {}
    for file in (*sorted(path.glob("*.parquet")), *sorted(path.glob("data/*.parquet"))):
        split = file.name.split(".")[0].split("-")[0]
        split = SPLIT_ALIASES.get(split, split)
        if split in SPLITS:
            listed.setdefault(split, []).append(file)
    return listed


def arrow_files(folder: Path) -> list[Path]:
    """Arrow files of a split that ``datasets`` saved, in order."""
    try:
        state = json.loads((folder / "state.json").read_text("utf-8"))
        return [folder / entry["filename"] for entry in state["_data_files"]]
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise TreetopError(f"{folder / 'state.json'}: not readable ({error})") from None


def matches(path: Path) -> bool:
    """Whether a file or folder is of this format."""
    return bool(tables_of(path))


def read(path: Path, options: ReadOptions) -> Dataset:
    """Read all splits."""
    found = tables_of(path)
    notes: list[str] = []
    tables = {name: read_record_batches(files, options, notes) for name, files in found.items()}
    files = tuple(file for files in found.values() for file in files)
    return dataset_of(NAME, tables, options, files, notes)


def read_record_batches(files: list[Path], options: ReadOptions, notes: list[str]) -> Table:
    """Read texts and labels of the files of a split, batch by batch; `notes` are added to."""
    texts = TextCollector()
    cells: list[object] = []
    records: list[dict[str, Any]] = []
    text: tuple[str, ...] = ()
    labels = None
    for file in files:
        for names, batch in batches_of(file):
            text, labels = choose_columns(file, names, options)
            notes += unread_columns(names, text, labels, options)
            columns = [batch.column(name).to_pylist() for name in text]
            for own in joined_texts(file, columns, text, len(texts) + 1):
                texts.append(own)
            if labels is not None:
                cells += with_class_names(batch.schema, labels, batch.column(labels).to_pylist())
            if options.keep_columns:
                records += batch.to_pylist()
    if not len(texts):
        raise TreetopError(f"{files[0] if files else 'the folder'}: no records: add at least one")
    kept = records if options.keep_columns else None
    if len(cells) < len(texts):  # not every file has labels
        return Table(texts.collected(), None, text, None, records=kept)
    return Table(texts.collected(), cells, text, labels, records=kept)


def batches_of(file: Path) -> Iterator[tuple[list[str], Any]]:
    """Yield the record batches of a file with the names of their columns."""
    pyarrow = arrow()
    try:
        if file.suffix == ".parquet":
            parquet = pyarrow.parquet.ParquetFile(file)
            for batch in parquet.iter_batches():
                batch.validate(full=True)
                yield batch.schema.names, batch.replace_schema_metadata(parquet.schema_arrow.metadata)
            return
        with pyarrow.memory_map(str(file)) as source, pyarrow.ipc.open_stream(source) as stream:
            for batch in stream:
                batch.validate(full=True)
                yield batch.schema.names, batch
    except (OSError, pyarrow.ArrowException) as error:
        raise TreetopError(f"{file}: not readable ({' '.join(str(error).split())[:120]})") from None


def with_class_names(schema: Any, column: str, values: list[Any]) -> list[Any]:
    """Replace label numbers by names if ``datasets`` saved the names of a ClassLabel."""
    metadata = (schema.metadata or {}).get(b"huggingface")
    if metadata is None:
        return values
    feature = json.loads(metadata).get("info", {}).get("features", {}).get(column, {})
    inner = feature.get("feature", feature) if isinstance(feature, dict) else feature
    inner = inner[0] if isinstance(inner, list) else inner
    names = inner.get("names") if isinstance(inner, dict) else None
    if not names:
        return values
    # ``datasets`` marks a row without a label by -1.
    return [
        [class_name(names, n) for n in as_list(field) if not is_missing(n) and n >= 0]
        for field in values
    ]


def as_list(value: object) -> list[Any]:
    """A field of labels as a list."""
    return value if isinstance(value, list) else [value]


def class_name(names: list[str], number: int) -> str:
    """The name of a class number."""
    if number >= len(names):
        raise TreetopError(f"label {number}: the file has names for {len(names)} classes only")
    return names[number]


def table_of(split: Split, names: list[str] | None) -> Any:
    """A split as an Arrow table with the columns ``text`` and ``labels``."""
    pyarrow = arrow()
    columns: dict[str, Any] = {"text": pyarrow.array(list(texts_of(split, NAME)), pyarrow.string())}
    if split.has_labels:
        kind = pyarrow.list_(pyarrow.string())
        columns["labels"] = pyarrow.array(split.named_labels(names), kind)
    return pyarrow.table(columns)


def write(dataset: Dataset, target: Path) -> None:
    """Write a Parquet file per split to a folder, or one file."""
    if not target.is_dir():
        split = dataset.split("train", *dataset.splits)
        arrow().parquet.write_table(table_of(split, dataset.label_names), target)
        return
    for name, split in dataset.splits.items():
        table = table_of(split, dataset.label_names)
        arrow().parquet.write_table(table, target / f"{name}.parquet")
