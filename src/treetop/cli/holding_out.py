"""``treetop train --hold-out``: metrics of a model that was trained without a part of the data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from treetop.base import FittedMixin
from treetop.cli.documents import documents_for
from treetop.cli.evaluate import evaluate_split
from treetop.data import Dataset
from treetop.data.partition import partition
from treetop.evaluation.propensity import DEFAULT, kind_of_data
from treetop.runtime.progress import Reporter

KEPT, HELD = "train", "held out"


def held_out_metrics(
    dataset: Dataset, share: float, train: Callable[[Dataset], FittedMixin], report: Reporter
) -> dict[str, Any]:
    """Train on a part of the training documents and evaluate on the rest, chosen at random.

    Documents that are equal are on one side.
    """
    split = dataset.split("train")
    parts = partition(split, {KEPT: 1 - share, HELD: share})
    rest, held = (split.rows(parts[name]) for name in (KEPT, HELD))
    report.note(
        f"training without {len(held):,} documents that are held out, to evaluate on them; "
        "then on all documents"
    )
    model = train(replace(dataset, splits={**dataset.splits, "train": rest}))
    held = documents_for(model.model_, held, dataset.format, report)
    folders = [folder.name for file in dataset.reading.files[:1] for folder in file.resolve().parents]
    kinds = map(kind_of_data, (*folders[:2], model.model_.preset))
    propensity = next(filter(None, kinds), DEFAULT)
    result = evaluate_split(model, held, dataset.label_names, report=report, propensity=propensity)
    where = (
        f"{len(held):,} documents that were held out, by a model that was trained on the other "
        f"{len(rest):,}; this one was trained on all."
    )
    return {"measured_on": where, **result.with_intervals()}
