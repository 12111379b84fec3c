"""What the command ``data split`` does."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from treetop.cli.console import Console
from treetop.cli.data_options import SplitOptions
from treetop.cli.paths import check_data, read_data
from treetop.data import Split
from treetop.data.dividing import write_divided
from treetop.data.partition import partition
from treetop.errors import TreetopError
from treetop.runtime.files import check_absent


def split_dataset(options: SplitOptions, console: Console | None = None) -> None:
    """Divide the documents of a data set and write the parts to a new folder."""
    console = console or Console()
    check_data(options.source)
    check_absent(options.target)
    if options.test + options.dev >= 1 or not options.test + options.dev:
        raise TreetopError("--test plus --dev must be above 0 and below 1")
    with console.progress() as report:
        dataset = read_data(options.source, replace(options, keep_columns=True), report)
        if len(dataset.splits) > 1:
            names = ", ".join(dataset.splits)
            raise TreetopError(f"{options.source}: has the splits {names} already: give one file")
        (split,) = dataset.splits.values()
        report.step("dividing")
        shares = {"train": 1 - options.test - options.dev, "dev": options.dev, "test": options.test}
        shares = {name: share for name, share in shares.items() if share}
        groups = None if options.group_by is None else groups_in(split, options.group_by)
        parts = partition(split, shares, options.seed, groups, options.stratify)
        written = write_divided(dataset, split, parts, options.target, options.form)
    sizes = ", ".join(f"{name} {rows.size:,}" for name, rows in parts.items())
    console.message(f"{options.target}: {written}; documents: {sizes}")


def groups_in(split: Split, column: str) -> list[Hashable]:
    """The values of a column of a table."""
    known = list(split.records[0]) if split.records else []
    if split.records is None or not any(column in record for record in split.records):
        listed = f"its columns are {', '.join(known)}" if known else "it has no columns"
        raise TreetopError(f"--group-by {column}: the data has no such column: {listed}")
    return [str(record.get(column)) for record in split.records]
