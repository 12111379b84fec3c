"""What the command ``calibrate`` does."""

from __future__ import annotations

import treetop
from treetop.cli.console import Console
from treetop.cli.documents import documents_for, split_name
from treetop.cli.evaluate import check_unseen, seen_in_training
from treetop.cli.options import CalibrateOptions
from treetop.cli.paths import check_model_and_data, check_split_has_labels, read_data
from treetop.model.layout import check_target, read_config
from treetop.runtime import Runtime


def calibrate_model(options: CalibrateOptions, console: Console | None = None) -> None:
    """Calibrate a model on documents that it was not trained on, and save it."""
    console = console or Console()
    check_model_and_data(options.model, options.data, "calibrate")
    target = options.output or options.model
    check_target(target)
    with console.progress() as report:
        report.step("loading model")
        estimator = treetop.load(str(options.model))
        dataset = read_data(options.data, options, report)
        name = split_name(dataset, options.split)
        split = documents_for(estimator.model_, dataset.splits[name], dataset.format, report)
        check_split_has_labels(split, "calibrate on")
        of_training = seen_in_training(estimator.model_, split)
        check_unseen(of_training, f"{options.data}, {name}", report)
        report.step("calibration")
        calibrated = estimator.calibrate(
            split.documents, split.named_labels(dataset.label_names), runtime=Runtime(reporter=report)
        )
        metrics = read_config(options.model, verify=False).get("metrics")
        calibrated.save(target, metrics if isinstance(metrics, dict) else None)
    thresholds = calibrated.model_.thresholds
    assert thresholds is not None
    share = thresholds.for_precision(0.95).share
    console.message(
        f"{target}: calibrated on {len(split):,} documents; at 95% precision {share:.0%} of the "
        "labels can be assigned automatically"
    )
