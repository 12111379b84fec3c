"""The runs of ``treetop train``: the folders beside a model that its training is resumed from."""

from __future__ import annotations

import shutil
from pathlib import Path

from treetop.cli.members import TRANSFORMER, Settings
from treetop.cli.options import TrainOptions
from treetop.data import Dataset
from treetop.errors import TreetopError
from treetop.training.run import is_own


def run_folder(output: Path, number: int) -> Path:
    """Where the run of a model is kept during training and afterwards."""
    return output.with_name(f"{output.name}.run") / f"member-{number}"


def discard_unstarted(runs: list[Path]) -> None:
    """Delete runs in which no encoder has been trained, so that the corrected command needs no option.

    A misspelt encoder, for instance, is noticed when the folder of the run exists already.
    """
    for run in filter(Path.is_dir, runs):
        files = list(run.iterdir())
        started = any(file.name.startswith(("level-", "checkpoint")) for file in files)
        if all(map(is_own, files)) and not started:
            shutil.rmtree(run)
            if not any(run.parent.iterdir()):
                run.parent.rmdir()


def run_options(options: TrainOptions, kind: str, dataset: Dataset, number: int) -> Settings:
    """Arguments that only `XRTransformer.fit` takes: its run and the validation split."""
    if kind != TRANSFORMER:
        return {}
    arguments: Settings = {
        "run": run_folder(options.output, number),
        "resume": options.resume,
        "overwrite": options.overwrite,
    }
    held_out = dataset.splits.get(options.validation)
    if held_out is not None and held_out.texts is not None and held_out.has_labels:
        arguments["validation"] = (held_out.texts, held_out.given_labels)
    elif options.validation not in ("dev", "none"):
        raise TreetopError(
            f"the data has no split {options.validation!r} with labels to validate on: "
            "leave out --validation, or give another split"
        )
    return arguments
