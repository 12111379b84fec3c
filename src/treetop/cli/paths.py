"""Paths a command is given: checks that they hold what they are taken for, and reading data."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Sequence
from pathlib import Path

from treetop.cli.console import shell_command
from treetop.data import Dataset, Split
from treetop.data.formats import FORMATS
from treetop.data.joining import contradicting_texts, joined
from treetop.data.options import ReadOptions
from treetop.data.read import read_dataset
from treetop.errors import TreetopError
from treetop.model import layout
from treetop.runtime.progress import Reporter


def read_data(path: Path, options: ReadOptions, report: Reporter) -> Dataset:
    """Read a data set as a stage of its own, and note what was detected."""
    report.step("reading data")
    dataset = read_dataset(path, options)
    detected = dataset.detected
    sizes = ", ".join(f"{name} {len(split):,}" for name, split in dataset.splits.items())
    report.note(f"{path}: {detected}; documents: {sizes}")
    for warning in dataset.reading.warnings:
        report.note(warning)
    return dataset


def read_all(paths: Sequence[Path], options: ReadOptions, report: Reporter) -> Dataset:
    """Read several data sets as one, and note contradictions."""
    dataset = joined([read_data(path, options, report) for path in paths], paths)
    if len(paths) > 1 and (count := contradicting_texts(dataset)):
        report.note(
            f"{count:,} documents have the text of an earlier one, but other labels: the model learns "
            "from all of them; delete those that are wrong"
        )
    return dataset


def check_data(path: Path) -> None:
    """Raise a `TreetopError` unless `path` exists and is no model folder."""
    if not path.exists():
        raise not_found(path, "file or folder")
    if is_model(path):
        raise TreetopError(
            f"{path}: is a model, not data: give the file or folder of the documents "
            "(see treetop data formats)"
        )


def check_all_data(paths: Sequence[Path]) -> None:
    """Raise a `TreetopError` unless all paths exist and none is a model folder."""
    for path in paths:
        check_data(path)


def check_model(path: Path) -> None:
    """Raise a `TreetopError` unless `path` is a folder that a model was saved to."""
    if is_model(path):
        return
    if not path.exists():
        raise not_found(path, "model folder")
    if path.is_file():
        raise TreetopError(f"{path}: is a file, not a model: give the folder that treetop train wrote")
    if (path / layout.CONFIG).is_file():
        return  # damaged, or made by something else: reading it says which
    inside = sorted(child for child in path.iterdir() if is_model(child))
    if inside:
        raise TreetopError(f"{path}: no model here: did you mean {inside[0]}?")
    trained = path.with_name(path.name.removesuffix(".run"))
    if path.name.endswith(".run"):
        hint = f"did you mean {trained}?" if is_model(trained) else "resume it with train --resume"
        raise TreetopError(f"{path}: is the folder of a training run, not a model: {hint}")
    if is_data(path):
        train = shell_command("train", path, "-o", "MODEL")
        raise TreetopError(f"{path}: holds data, not a model: train a model first: {train}")
    raise TreetopError(
        f"{path}: no model here, {layout.CONFIG} is missing: give the folder that treetop train wrote"
    )


def check_model_and_data(model: Path, data: Path, command: str) -> None:
    """Raise a `TreetopError` for a wrong model or data path; name the order if they are swapped."""
    if model.exists() and not is_model(model) and is_model(data):
        right = shell_command(command, data, model)
        raise TreetopError(f"{data} is the model and {model} the data: swap them: {right}")
    check_model(model)
    check_data(data)


def check_readable(path: Path) -> None:
    """Raise a `TreetopError` unless documents can be read from a path: a file, a pipe or data."""
    if path.is_file() or (path.is_dir() and is_data(path)):
        return
    if not path.exists() and " " in path.name.strip():
        command = f"echo {shlex.quote(str(path))} | treetop predict MODEL"
        raise TreetopError(f"{path}: no such file; to label this text: {command}")
    if not path.exists():
        raise not_found(path, "file")
    if not path.is_dir():
        return  # a pipe or a device
    if is_model(path):
        raise TreetopError(f"{path}: is a model: give a file with one text per line, or - for stdin")
    texts = sorted(path.glob("*.txt"))
    hint = f"such as {texts[-1]}" if texts else "or - for stdin"
    raise TreetopError(f"{path}: is a folder: give a file with one text per line, {hint}")


def check_split_has_labels(split: Split, purpose: str) -> None:
    """Raise a `TreetopError` unless a split has labels; `purpose` is what they are needed to do."""
    if not split.has_labels:
        raise TreetopError(
            f"the data has no labels to {purpose}: name their column with --labels-column, or add a "
            "file of labels (see treetop data formats)"
        )


def is_model(path: Path) -> bool:
    """Whether a path is a folder with the config.json of a treetop model."""
    return layout.listed_files(path) is not None


def is_data(path: Path) -> bool:
    """Whether a path is in one of the supported data formats."""
    return any(form.matches(path) for form in FORMATS)


def not_found(path: Path, what: str) -> TreetopError:
    """The error for a path that does not exist, with the path that was probably meant."""
    parent = path.parent
    if not parent.is_dir():
        missing = next(p for p in reversed((path, *path.parents)) if not p.exists())
        return TreetopError(f"{path}: no such {what}: {missing} does not exist: check the path")
    names = [child.name for child in parent.iterdir()]
    near = difflib.get_close_matches(path.name, names, 1, 0.6)
    if not near:
        near = [name for name in names if Path(name).stem == path.stem][:1]
    if near:
        return TreetopError(f"{path}: no such {what}: did you mean {parent / near[0]}?")
    hint = "check the path" if path.is_absolute() else f"check the path, relative to {Path.cwd()}"
    return TreetopError(f"{path}: no such {what}: {hint}")
