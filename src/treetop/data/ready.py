"""Precomputed features of texts: matrices such as ``tfidf-attnxml/X.trn.npz`` in archives of PECOS."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from treetop.data.dataset import Dataset, Split
from treetop.data.npz import load_matrix
from treetop.data.options import ANY_FEATURES, NO_FEATURES, ReadOptions
from treetop.data.pecos import ENDINGS, SUFFIX
from treetop.errors import TreetopError

Files = Mapping[str, Path]


def with_ready_features(
    dataset: Dataset, path: Path | None, options: ReadOptions, searched: bool
) -> Dataset:
    """A copy whose texts have the precomputed features that the options ask for, or that are found.

    They are looked for only in folders that are `searched`; `path` is None for data in memory.
    """
    texts = [name for name, split in dataset.splits.items() if split.texts is not None]
    asked = options.features
    if asked == NO_FEATURES or (asked == ANY_FEATURES and not (searched and path and texts)):
        return dataset
    if not texts:
        raise TreetopError(f"{path}: has no texts to add features to: leave out --features (features=)")
    if asked != ANY_FEATURES:
        return joined_with(dataset, files_asked_for(asked, path, texts))
    assert path is not None
    if path.is_file():  # a file of features that was given itself, with its texts beside it
        return joined_with(dataset, {texts[0]: path}) if path.name.endswith(SUFFIX) else dataset
    found = [files for folder in (path, *subfolders(path)) if (files := files_in(folder, texts))]
    complete = [files for files in found if len(files) == len(texts)]
    if len(complete) > 1:
        folders = " and ".join(str(next(iter(files.values())).parent) for files in complete)
        raise TreetopError(
            f"{path}: has precomputed features in {folders}: choose a folder with --features, or give "
            "--features none (features=)"
        )
    if complete:
        return joined_with(dataset, complete[0])
    return with_warnings(dataset, found, texts)


def subfolders(path: Path) -> list[Path]:
    """The folders in a folder, by name."""
    return sorted(child for child in path.iterdir() if child.is_dir())


def files_in(folder: Path, splits: list[str]) -> dict[str, Path]:
    """The files of features in a folder, by split."""
    found = {}
    for split in splits:
        names = (f"X{ending}{SUFFIX}" for ending in ENDINGS.get(split, (f".{split}",)))
        if file := next((folder / name for name in names if (folder / name).is_file()), None):
            found[split] = file
    return found


def files_asked_for(asked: str, path: Path | None, splits: list[str]) -> dict[str, Path]:
    """The files of features that a user named: a folder, in the data or elsewhere, or a single file."""
    inner = None if path is None or not path.is_dir() else path / asked
    place = inner if inner is not None and inner.exists() else Path(asked)
    if place.is_file():
        if len(splits) > 1:
            raise TreetopError(
                f"{place}: one file of features for the splits {', '.join(splits)}: give a folder with "
                "X.trn.npz, X.tst.npz"
            )
        return {splits[0]: place}
    if not place.is_dir():
        raise TreetopError(f"--features {asked}: no such file or folder: give one, auto or none")
    files = files_in(place, splits)
    for split in splits:
        if split not in files:
            names = ", ".join(f"X{ending}{SUFFIX}" for ending in ENDINGS.get(split, (f".{split}",)))
            raise TreetopError(f"{place}: has no features of the split {split}: add one of {names}")
    return files


def joined_with(dataset: Dataset, files: Files) -> Dataset:
    """A copy whose texts have the features in these files."""
    splits: dict[str, Split] = dict(dataset.splits)
    widths = {}
    for name, file in files.items():
        X = load_matrix(file)
        if X.shape[0] != len(splits[name]):
            raise TreetopError(
                f"{file}: {X.shape[0]:,} rows, but the split {name} has {len(splits[name]):,} texts: "
                "give one row per text, or leave the features out with --features none"
            )
        widths[X.shape[1]] = file
        splits[name] = replace(splits[name], X=X)
    if len(widths) > 1:
        listed = " and ".join(f"{file} has {width:,}" for width, file in widths.items())
        raise TreetopError(f"{listed} columns: features of all splits must have the same columns")
    reading = replace(
        dataset.reading,
        features=tuple(files.values()),
        files=(*dataset.reading.files, *files.values()),
    )
    return replace(dataset, splits=splits, reading=reading)


def with_warnings(dataset: Dataset, found: list[dict[str, Path]], texts: list[str]) -> Dataset:
    """A copy that warns of features that are there for some splits only, and not used therefore."""
    warnings = tuple(
        f"{next(iter(files.values())).parent}: has features of {', '.join(files)}, but not of "
        f"{', '.join(name for name in texts if name not in files)}: they are not used"
        for files in found
    )
    reading = replace(dataset.reading, warnings=(*dataset.reading.warnings, *warnings))
    return replace(dataset, reading=reading)
