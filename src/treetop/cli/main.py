"""``treetop``: each command is a thin layer over the package. Heavy imports wait for their command."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Optional

import typer

from treetop import __version__
from treetop.cli.changing import add_changing_commands
from treetop.cli.completion import complete_setting_name
from treetop.cli.console import Console, versions
from treetop.cli.data import data_app
from treetop.cli.mistakes import print_error
from treetop.cli.model_options import (
    CompareOptions,
    EvaluateOptions,
    ExplainOptions,
    PredictOptions,
    ReportOptions,
)
from treetop.cli.options import CalibrateOptions, DemoOptions, TrainOptions, TuneOptions
from treetop.cli.running import run_app
from treetop.cli.typer_options import options_from
from treetop.cli.usage import CONTEXT, HelpGroup, JsonOption, Quiet, Verbose, command, with_verbosity
from treetop.runtime.extras import namesake_warning, require
from treetop.runtime.scipy_first import import_scipy
from treetop.serve.options import ServiceOptions

START, USE, LOOK_UP, SET_UP = "Get started", "Use a model", "Look up", "Set up"

app = typer.Typer(
    cls=HelpGroup,
    help="Tag text with labels from a vocabulary of thousands to millions.",
    epilog="`treetop COMMAND --help` shows the options of a command, with examples.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings=CONTEXT,
)


def show_version(console: Console, asked: bool) -> None:
    """Print the version, and with ``-v`` those of Python and the main dependencies; then exit."""
    if asked:
        console.result(versions() if console.verbose else f"treetop {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def root(
    ctx: typer.Context,
    version: Annotated[
        bool, typer.Option("-V", "--version", help="Show the version and exit.")
    ] = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Set up what all commands share."""
    ctx.obj = with_verbosity(ctx.obj, verbose, quiet)
    show_version(ctx.obj, version)
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


@command(app, "demo", START, "treetop demo\ntreetop demo --linear\ntreetop demo --serve")
@options_from(DemoOptions)
def demo_command(options: DemoOptions) -> None:
    """Train, compare and explain models on 4,000 records of scientific databases."""
    from treetop.cli.demo import run_demo

    run_demo(options)


@command(
    app,
    "train",
    START,
    "treetop train mydata -o mymodel\n"
    "treetop train articles.csv -o mymodel --text-column body --labels-column topics\n"
    "treetop train mydata -o mymodel --model xr-transformer --encoder minilm\n"
    "treetop train mydata -o mymodel --preset bonsai --set beam=20 --set seed=1",
)
@options_from(TrainOptions)
def train_command(options: TrainOptions, console: Console | None = None) -> None:
    """Train a model on the training split of DATA."""
    from treetop.cli.train import train_model

    train_model(options, console or Console())


@command(
    app,
    "tune",
    START,
    "treetop tune mydata -o mypreset.json --time 30m\n"
    "treetop tune mydata -o mypreset.json --time 2h --jobs 4",
)
@options_from(TuneOptions)
def tune_command(options: TuneOptions, console: Console | None = None) -> None:
    """Search settings that suit DATA; never returns any that are worse than the defaults there."""
    import_scipy()
    from treetop.cli.tune import tune_settings

    tune_settings(options, console or Console())


@command(
    app,
    "predict",
    USE,
    "treetop predict mymodel texts.txt -k 3\n"
    "treetop predict mymodel articles.csv --text-column body -o predictions.jsonl\n"
    'echo "a text" | treetop predict mymodel --format tsv',
)
@options_from(PredictOptions)
def predict_command(options: PredictOptions, console: Console | None = None) -> None:
    """Predict labels for texts: names and scores, one JSON line per text."""
    import_scipy()
    from treetop.cli.predict import predict_file

    predict_file(options, console or Console())


@command(
    app,
    "evaluate",
    USE,
    "treetop evaluate mymodel mydata\ntreetop evaluate mymodel mydata --split dev --json",
)
@options_from(EvaluateOptions)
def evaluate_command(options: EvaluateOptions, console: Console | None = None) -> None:
    """Compute every metric, overall and by label frequency."""
    import_scipy()
    from treetop.cli.evaluate import evaluate_model

    evaluate_model(options, console)


@command(
    app,
    "compare",
    USE,
    "treetop compare mymodel other mydata\ntreetop compare mymodel other mydata --json",
)
@options_from(CompareOptions)
def compare_command(options: CompareOptions, console: Console | None = None) -> None:
    """Compare two models on the same documents: differences with intervals, and examples."""
    import_scipy()
    from treetop.cli.comparison import compare_models

    compare_models(options, console)


@command(
    app,
    "calibrate",
    USE,
    "treetop calibrate mymodel mydata --split dev",
)
@options_from(CalibrateOptions)
def calibrate_command(options: CalibrateOptions, console: Console | None = None) -> None:
    """Fit probabilities and thresholds to documents that the model was not trained on."""
    import_scipy()
    from treetop.cli.calibration import calibrate_model

    calibrate_model(options, console)


@command(
    app,
    "report",
    USE,
    "treetop report mymodel mydata\ntreetop report mymodel other --data mydata -o both.html",
)
@options_from(ReportOptions)
def report_command(options: ReportOptions, console: Console | None = None) -> None:
    """Write an HTML report: metrics, confidence, worst labels and documents, tree, training."""
    import_scipy()
    from treetop.cli.reporting import report_models

    report_models(options, console)


@command(
    app,
    "explain",
    USE,
    'treetop explain mymodel "a text"\ntreetop explain mymodel "a text" --label fruit --json',
)
@options_from(ExplainOptions)
def explain_command(options: ExplainOptions, console: Console | None = None) -> None:
    """Show why a text gets its labels: words, encoder, the path through the tree."""
    import_scipy()
    from treetop.cli.explain import explain_text

    explain_text(
        options.model,
        options.text,
        labels=list(options.label) or None,
        k=options.k,
        words=options.words,
        as_json=options.json,
        features=options.features,
        console=console,
    )


@command(app, "serve", USE, "treetop serve mymodel\ntreetop serve mymodel --host 0.0.0.0 --port 80")
@options_from(ServiceOptions)
def serve_command(options: ServiceOptions, console: Console | None = None) -> None:
    """Serve a model: a web page and an HTTP API."""
    # Not prometheus_client: workers import it once PROMETHEUS_MULTIPROC_DIR is set.
    require("the web page and the HTTP API", "serve", "fastapi", "uvicorn", "httptools")
    from treetop.cli.paths import check_model
    from treetop.serve.run import serve

    check_model(options.model)
    if console is not None and console.quiet:
        logging.getLogger("treetop.serve").setLevel(logging.WARNING)
    raise typer.Exit(serve(options))


add_changing_commands(app, "Change a model")
app.add_typer(data_app, name="data", rich_help_panel=START)


@command(app, "presets", LOOK_UP)
def presets_command(json: JsonOption = False, console: Console | None = None) -> None:
    """List the presets: named settings for `train --preset`."""
    from treetop.cli.listing import list_presets

    list_presets(console or Console(), json)


@command(app, "settings", LOOK_UP, "treetop settings beam budget\ntreetop settings --json")
def settings_command(
    names: Annotated[
        Optional[list[str]],
        typer.Argument(
            help="Settings to show; all of them by default.",
            metavar="NAME",
            autocompletion=complete_setting_name,
        ),
    ] = None,
    json: JsonOption = False,
    console: Console | None = None,
) -> None:
    """List the settings for `train --set`, with defaults and what they do."""
    from treetop.cli.listing import list_settings

    list_settings(names or [], console or Console(), json)


@command(app, "warm-up", SET_UP)
def warm_up_command(
    jobs: Annotated[
        Optional[int],
        typer.Option(
            "--jobs", help="Number of processes; by default one per core.", min=1, metavar="N"
        ),
    ] = None,
    console: Console | None = None,
) -> None:
    """Compile everything now, not on first use: for images and shared installations."""
    from treetop.cli.listing import warm_up_kernels

    warm_up_kernels(jobs, console or Console())


def run_command(arguments: Sequence[str], program: str = "treetop") -> int:
    """Run a command in this process and return its exit code."""
    return run_app(app, arguments, program)


def main() -> None:
    """Run the command line of this process."""
    if warning := namesake_warning():
        print_error(warning)
    as_module = Path(sys.argv[0]).name == "__main__.py"
    sys.exit(run_command(sys.argv[1:], "python -m treetop" if as_module else "treetop"))
