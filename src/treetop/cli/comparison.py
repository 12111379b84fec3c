"""What the command ``compare`` does."""

from __future__ import annotations

import treetop
from treetop.cli.console import Console
from treetop.cli.evaluate import check_metrics, judge
from treetop.cli.model_options import CompareOptions
from treetop.cli.paths import check_data, check_model, read_data
from treetop.evaluation.comparing import comparison_of

# As in `treetop.compare`; the metrics that are compared need no more.
COMPARED_RANKS = (1, 3, 5)


def compare_models(options: CompareOptions, console: Console | None = None) -> None:
    """Evaluate two models on the same split and print how they differ."""
    console = console or Console()
    check_metrics(options.propensity)
    for model in (options.a, options.b):
        check_model(model)
    check_data(options.data)
    with console.progress() as report:
        dataset = read_data(options.data, options, report)
        results = []
        for model in (options.a, options.b):
            report.step(f"loading {model}")
            estimator = treetop.load(str(model))
            results.append(judge(estimator, dataset, options, report, k=COMPARED_RANKS).result)
    comparison = comparison_of(
        (results[0], results[1]),
        (str(options.a), str(options.b)),
        samples=options.samples,
        seed=options.seed,
        examples=options.examples,
    )
    if options.json:
        console.json(comparison)
    else:
        print(comparison)
