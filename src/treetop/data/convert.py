"""Convert data from one format to another."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from treetop.data import columnar, tables, textlines
from treetop.data.dataset import SPLITS, Dataset
from treetop.data.files import plain_name
from treetop.data.formats import FORMATS
from treetop.errors import TreetopError
from treetop.runtime.files import check_absent, replacing_folder

Writer = Callable[[Dataset, Path], None]
# One writer serves all formats of tables.
WRITERS: dict[str, Writer] = {form.NAME: form.write for form in FORMATS if form is not tables} | {
    kind: partial(tables.write, ending=f".{kind}") for kind in ("csv", "tsv", "jsonl")
}
# Formats that can be a single file.
FILES = ("csv", "tsv", "jsonl", columnar.NAME)
# Formats that hold features, but no texts.
FEATURES = ("libsvm", "xmlrepo", "xmlrepo-split")
# Formats in which a line break ends a document.
LINES = ("text-lines", "attentionxml", "fasttext", "annif", "pecos")


def form_of(target: Path, asked: str | None) -> str:
    """The requested format, by default the one of the target's suffix, or text lines for a folder."""
    if asked is not None:
        if asked not in WRITERS:
            raise TreetopError(f"unknown format {asked!r}: choose one of {', '.join(WRITERS)}")
        return asked
    ending = plain_name(target).rpartition(".")[2]
    return ending if ending in FILES else textlines.NAME


def convert(dataset: Dataset, target: Path, form: str | None = None) -> str:
    """Write a data set to a new folder or file, and return the name of the format used."""
    check_absent(target)
    form = form_of(target, form)
    for name in dataset.splits:
        if name not in SPLITS:
            raise TreetopError(f"the split {name!r} cannot be written: splits are {', '.join(SPLITS)}")
    single = plain_name(target).endswith(tuple(f".{kind}" for kind in FILES))
    if single and form not in FILES:
        raise TreetopError(f"{target}: {form} writes several files: give a folder")
    if single and not plain_name(target).endswith(f".{form}"):
        raise TreetopError(f"{target}: the suffix does not match {form}: name it {target.stem}.{form}")
    if single and len(dataset.splits) > 1:
        raise TreetopError(
            f"{target}: a single file cannot hold {len(dataset.splits)} splits "
            f"({', '.join(dataset.splits)}): give a folder and --to {form}"
        )

    def written(folder: Path) -> Path:
        return folder / target.name if single else folder

    with replacing_folder(target, check_absent, written) as folder:
        WRITERS[form](dataset, written(folder))
    return form
