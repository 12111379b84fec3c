"""The runs of ``treetop train``: the folders beside a model that its training is resumed from."""

from __future__ import annotations

import shutil
from pathlib import Path

from treetop.cli.members import TRANSFORMER, Settings
from treetop.cli.options import TrainOptions
from treetop.data import Dataset
from treetop.errors import TreetopError
from treetop.runtime import Runtime
from treetop.training.run import is_own


def run_folder(output: Path, number: int, held_out: bool = False) -> Path:
    """Where the run of a model, or of one with documents held out, is kept, also afterwards."""
    kind = "held-out" if held_out else "member"
    return output.with_name(f"{output.name}.run") / f"{kind}-{number}"


def run_folders(options: TrainOptions, members: int) -> list[Path]:
    """The folders of all runs of a training."""
    held_out = [False] if options.hold_out is None else [True, False]
    return [run_folder(options.output, n, held) for held in held_out for n in range(members)]


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


def run_options(
    options: TrainOptions, kind: str, dataset: Dataset, number: int, held_out: bool = False
) -> Settings:
    """Arguments of `fit` besides the data; only `XRTransformer` takes a run."""
    arguments: Settings = {"runtime": Runtime(processes=options.processes, cluster=options.cluster)}
    if kind == TRANSFORMER:
        arguments |= {
            "run": run_folder(options.output, number, held_out),
            "resume": options.resume,
            "overwrite": options.overwrite,
        }
    elif dataset.split("train").texts is None or dataset.split("train").X is not None:
        return arguments  # precomputed features: there is nothing to choose
    split = dataset.splits.get(options.validation)
    if split is not None and split.texts is not None and split.has_labels:
        arguments["validation"] = (split.documents, split.given_labels)
    elif options.validation not in ("dev", "none"):
        raise TreetopError(
            f"the data has no split {options.validation!r} with labels to validate on: "
            "leave out --validation, or give another split"
        )
    return arguments
