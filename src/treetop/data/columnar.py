"""Parquet files, and folders that the Hugging Face library ``datasets`` saved (Arrow)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from treetop.data.dataset import SPLITS, Columns, Dataset, Split
from treetop.data.holding import texts_of
from treetop.data.tables import Raw, choose_columns, is_missing, with_labels
from treetop.errors import TreetopError
from treetop.runtime.extras import require

NAME = "parquet"
ABOUT = "Parquet files, or a folder saved by Hugging Face datasets, with columns of texts and labels"
# What other libraries call the split that is here called dev.
OTHER_NAMES = {"validation": "dev", "valid": "dev", "val": "dev"}


def arrow() -> Any:
    """The package that reads both."""
    return require("Parquet and Arrow files", "data", "pyarrow", "pyarrow.parquet")


def tables_of(path: Path) -> dict[str, list[Path]]:
    """Files of each split: one Parquet file, those of a folder, or saved Arrow files."""
    if path.is_file():
        return {"train": [path]} if path.suffix == ".parquet" else {}
    if (path / "state.json").is_file():
        return {"train": arrow_files(path)}
    if (path / "dataset_dict.json").is_file():
        folders = (folder for folder in sorted(path.iterdir()) if (folder / "state.json").is_file())
        found = {OTHER_NAMES.get(folder.name, folder.name): arrow_files(folder) for folder in folders}
        return {name: found[name] for name in dict.fromkeys((*SPLITS, *found)) if name in found}
    listed: dict[str, list[Path]] = {}
    for file in (*sorted(path.glob("*.parquet")), *sorted(path.glob("data/*.parquet"))):
        split = file.name.split(".")[0].split("-")[0]
        split = OTHER_NAMES.get(split, split)
        if split in SPLITS:
            listed.setdefault(split, []).append(file)
    return listed


def arrow_files(folder: Path) -> list[Path]:
    """Files of a saved split, in their order."""
    try:
        state = json.loads((folder / "state.json").read_text("utf-8"))
        return [folder / one["filename"] for one in state["_data_files"]]
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise TreetopError(f"{folder / 'state.json'}: not readable ({error})") from None


def matches(path: Path) -> bool:
    """Whether a file or folder is of this format."""
    return bool(tables_of(path))


def read(path: Path, columns: Columns) -> Dataset:
    """All splits that are there."""
    found = {name: read_record_batches(files, columns) for name, files in tables_of(path).items()}
    return Dataset(NAME, with_labels(found))


def read_record_batches(files: list[Path], columns: Columns) -> Raw:
    """Texts and labels of some files, batch by batch."""
    texts: list[str] = []
    raw: list[Any] = []
    for file in files:
        for names, batch in batches_of(file):
            text, labels = choose_columns(file, names, columns)
            found = batch.column(text).to_pylist()
            for number, one in enumerate(found, start=len(texts) + 1):
                if not isinstance(one, str):
                    raise TreetopError(f"{file}: row {number}: {text!r} is not a text")
            texts += found
            if labels is not None:
                raw += with_class_names(batch.schema, labels, batch.column(labels).to_pylist())
    if not texts:
        raise TreetopError(f"{files[0] if files else 'the folder'}: no records")
    return Raw(texts, raw if len(raw) == len(texts) else None)


def batches_of(file: Path) -> Iterator[tuple[list[str], Any]]:
    """Record batches with the names of their columns."""
    pyarrow = arrow()
    try:
        if file.suffix == ".parquet":
            opened = pyarrow.parquet.ParquetFile(file)
            for batch in opened.iter_batches():
                yield batch.schema.names, batch.replace_schema_metadata(opened.schema_arrow.metadata)
            return
        with pyarrow.memory_map(str(file)) as source, pyarrow.ipc.open_stream(source) as stream:
            for batch in stream:
                yield batch.schema.names, batch
    except (OSError, pyarrow.ArrowException) as error:
        raise TreetopError(f"{file}: not readable ({' '.join(str(error).split())[:120]})") from None


def with_class_names(schema: Any, column: str, values: list[Any]) -> list[Any]:
    """Label numbers as names, where ``datasets`` noted the names of a ClassLabel."""
    noted = (schema.metadata or {}).get(b"huggingface")
    if noted is None:
        return values
    feature = json.loads(noted).get("info", {}).get("features", {}).get(column, {})
    inner = feature.get("feature", feature) if isinstance(feature, dict) else feature
    inner = inner[0] if isinstance(inner, list) else inner
    names = inner.get("names") if isinstance(inner, dict) else None
    if not names:
        return values
    return [
        [class_name(names, n) for n in as_list(one) if not is_missing(n) and n >= 0] for one in values
    ]


def as_list(value: Any) -> list[Any]:
    """One label, or several."""
    return value if isinstance(value, list) else [value]


def class_name(names: list[str], number: int) -> str:
    """The name of a class; -1 is how ``datasets`` marks a row without a label."""
    if number >= len(names):
        raise TreetopError(f"label {number}: there are names for {len(names)} classes")
    return names[number]


def table_of(split: Split, names: list[str] | None) -> Any:
    """A split as an Arrow table with the columns text and labels."""
    pyarrow = arrow()
    columns: dict[str, Any] = {"text": pyarrow.array(list(texts_of(split, NAME)), pyarrow.string())}
    if split.has_labels:
        kind = pyarrow.list_(pyarrow.string())
        columns["labels"] = pyarrow.array(split.named_labels(names), kind)
    return pyarrow.table(columns)


def write(dataset: Dataset, target: Path) -> None:
    """A Parquet file for each split of a folder, or one file."""
    if not target.is_dir():
        split = dataset.split("train", *dataset.splits)
        arrow().parquet.write_table(table_of(split, dataset.label_names), target)
        return
    for name, split in dataset.splits.items():
        table = table_of(split, dataset.label_names)
        arrow().parquet.write_table(table, target / f"{name}.parquet")
