"""From one format to another."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from treetop.data import columnar, tables, textlines
from treetop.data.dataset import SPLITS, Dataset
from treetop.data.files import plain_name
from treetop.data.formats import FORMATS
from treetop.errors import TreetopError
from treetop.runtime.files import replacing_folder

Writer = Callable[[Dataset, Path], None]
# A table's writer serves three formats.
WRITERS: dict[str, Writer] = {form.NAME: form.write for form in FORMATS if form is not tables} | {
    kind: partial(tables.write, ending=f".{kind}") for kind in ("csv", "tsv", "jsonl")
}
# Formats of which one file can stand alone.
FILES = ("csv", "tsv", "jsonl", columnar.NAME)
# Formats in which a line break ends a document.
LINES = ("text-lines", "attentionxml", "fasttext", "annif", "pecos")


def form_of(target: Path, asked: str | None) -> str:
    """The format asked for, or the one that the target's name says; a folder is of text lines."""
    if asked is not None:
        if asked not in WRITERS:
            raise TreetopError(f"unknown format {asked!r}: choose one of {', '.join(WRITERS)}")
        return asked
    ending = plain_name(target).rpartition(".")[2]
    return ending if ending in FILES else textlines.NAME


def convert(dataset: Dataset, target: Path, form: str | None = None) -> str:
    """Write a data set to a new folder or file; the format it was written in."""
    check_absent(target)
    form = form_of(target, form)
    for name in dataset.splits:
        if name not in SPLITS:
            raise TreetopError(f"the split {name!r} has no place: splits are {', '.join(SPLITS)}")
    single = plain_name(target).endswith(tuple(f".{kind}" for kind in FILES))
    if single and form not in FILES:
        raise TreetopError(f"{target}: {form} is a folder of files: give a folder")
    if single and not plain_name(target).endswith(f".{form}"):
        raise TreetopError(f"{target}: its name does not say {form}: call it {target.stem}.{form}")
    if single and len(dataset.splits) > 1:
        raise TreetopError(
            f"{target}: one file for {len(dataset.splits)} splits ({', '.join(dataset.splits)}): "
            f"give a folder and --to {form}"
        )
    with replacing_folder(target, check_absent) as folder:
        if single:
            WRITERS[form](dataset, folder / target.name)
        else:
            WRITERS[form](dataset, folder)
    if single:
        unwrap(target)
    return form


def check_absent(target: Path) -> None:
    """Raise if there is anything at `target`, be it a link to nothing."""
    if os.path.lexists(target):
        raise TreetopError(f"{target}: exists already: choose another place")


def unwrap(target: Path) -> None:
    """Put the one file of a folder in the folder's place."""
    inner = target.with_name(f".{target.name}.whole")
    target.rename(inner)
    (inner / target.name).rename(target)
    inner.rmdir()
