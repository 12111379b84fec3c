"""``treetop``: each command is a thin layer over the package. Heavy imports wait for their command."""

from __future__ import annotations

import logging
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Optional, TextIO

import typer

from treetop import __version__
from treetop.cli.completion import complete_setting_name, one_of
from treetop.cli.console import Console, versions
from treetop.cli.data import data_app
from treetop.cli.mistakes import (
    InterruptedRunError,
    check_encoder_packages,
    explain_usage_error,
    print_error,
)
from treetop.cli.options import (
    JSON_HELP,
    MODEL_HELP,
    EvaluateOptions,
    ExplainOptions,
    PredictOptions,
    TrainOptions,
    options_from,
)
from treetop.cli.usage import CONTEXT, HelpGroup, Quiet, Verbose, command, with_verbosity
from treetop.errors import TreetopError
from treetop.runtime.extras import namesake_warning, require
from treetop.serve.options import ServiceOptions

INTERRUPTED = 130
START, USE, CHANGE, LOOK_UP = "Get started", "Use a model", "Change a model", "Look up"

app = typer.Typer(
    cls=HelpGroup,
    help="Tag text with labels from a vocabulary of thousands to millions.",
    epilog="`treetop COMMAND --help` shows the options of a command, with examples.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings=CONTEXT,
)

ModelArgument = Annotated[Path, typer.Argument(help=MODEL_HELP, metavar="MODEL")]
JsonOption = Annotated[bool, typer.Option("--json", help=JSON_HELP)]
TestData = Annotated[
    Optional[Path],
    typer.Option("--data", help="Data whose test split shows the cost in precision.", metavar="DATA"),
]


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


@command(app, "demo", START, "treetop demo\ntreetop demo --linear -o model")
def demo_command(
    output: Annotated[
        Optional[Path],
        typer.Option("-o", "--output", help="Keep the model in this folder.", metavar="MODEL"),
    ] = None,
    linear: Annotated[
        bool, typer.Option("--linear", help="Train XRLinear only, which does not need torch.")
    ] = False,
) -> None:
    """Train, evaluate and predict on example data that needs no download."""
    from treetop.cli.demo import run_demo

    if not linear:
        check_encoder_packages(", or run the demo without an encoder: treetop demo --linear")
    run_demo(output, linear)


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
    "predict",
    USE,
    "treetop predict mymodel texts.txt -k 3\n"
    "treetop predict mymodel articles.csv --text-column body -o predictions.jsonl\n"
    'echo "a text" | treetop predict mymodel --format tsv',
)
@options_from(PredictOptions)
def predict_command(options: PredictOptions, console: Console | None = None) -> None:
    """Predict labels for texts: names and scores, one JSON line per text."""
    from treetop.cli.work import predict_file

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
    from treetop.cli.work import evaluate_model

    evaluate_model(options, console)


@command(
    app,
    "explain",
    USE,
    'treetop explain mymodel "a text"\ntreetop explain mymodel "a text" --label fruit --json',
)
@options_from(ExplainOptions)
def explain_command(options: ExplainOptions, console: Console | None = None) -> None:
    """Show why a text gets its labels: words, encoder, the path through the tree."""
    from treetop.cli.work import explain_text

    explain_text(
        options.model,
        options.text,
        labels=list(options.label) or None,
        k=options.k,
        words=options.words,
        as_json=options.json,
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


@command(app, "ensemble", CHANGE, "treetop ensemble model-1 model-2 -o both --combine rank")
def ensemble_command(
    models: Annotated[
        list[Path],
        typer.Argument(help="Model folders, trained on the same data.", metavar="MODEL"),
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Folder to write to.", metavar="MODEL")
    ],
    combine: Annotated[
        str,
        typer.Option(
            help="How to combine the scores of the models.",
            metavar="average|rank|sigmoid|softmax",
            autocompletion=one_of(("average", "rank", "sigmoid", "softmax")),
        ),
    ] = "average",
    console: Console | None = None,
) -> None:
    """Combine trained models into one."""
    from treetop.cli.train import join_models

    join_models(models, output, combine, console)


@command(
    app,
    "compress",
    CHANGE,
    "treetop compress mymodel -o small --data mydata\n"
    "treetop compress mymodel -o small --max-size 200MB",
)
def compress_command(
    model: ModelArgument,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Folder for the smaller model.", metavar="MODEL")
    ],
    max_size: Annotated[
        Optional[str],
        typer.Option(help="Drop the smallest weights until the folder fits.", metavar="SIZE"),
    ] = None,
    weights: Annotated[
        str,
        typer.Option(
            help="Type of the stored weights.",
            metavar="float16|int8",
            autocompletion=one_of(("float16", "int8")),
        ),
    ] = "int8",
    data: TestData = None,
    json: JsonOption = False,
    console: Console | None = None,
) -> None:
    """Make a model smaller, and show the cost in precision."""
    from treetop.cli.exchange import compress_model

    compress_model(model, output, max_size, weights, data, console, json)


@command(app, "export-onnx", CHANGE, "treetop export-onnx mymodel -o exported --int8 --data mydata")
def export_onnx_command(
    model: ModelArgument,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Folder for the exported model.", metavar="MODEL")
    ],
    int8: Annotated[
        bool, typer.Option("--int8", help="Quantize the encoder to 8 bits: smaller and faster.")
    ] = False,
    data: TestData = None,
    json: JsonOption = False,
    console: Console | None = None,
) -> None:
    """Export the encoder to ONNX, so that the model predicts without torch."""
    from treetop.cli.exchange import export_model

    export_model(model, output, int8, data, console, json)


@command(
    app,
    "import-pecos",
    CHANGE,
    "treetop import-pecos pecos-model -o mymodel --words pecos-tfidf --labels labels.txt\n"
    "treetop import-pecos params.json -o mypreset.json",
)
def import_pecos_command(
    source: Annotated[
        Path, typer.Argument(help="A model folder or a params.json of PECOS.", metavar="SOURCE")
    ],
    output: Annotated[
        Path,
        typer.Option("-o", "--output", help="Model folder, or preset (.json).", metavar="PATH"),
    ],
    words: Annotated[
        Optional[Path],
        typer.Option(help="Folder of PECOS's TF-IDF, to predict from texts.", metavar="PATH"),
    ] = None,
    labels: Annotated[
        Optional[Path], typer.Option(help="File of label names, one per line.", metavar="FILE")
    ] = None,
    console: Console | None = None,
) -> None:
    """Convert a model trained by PECOS, or its params.json to a preset."""
    from treetop.cli.exchange import import_from_pecos

    import_from_pecos(source, output, words, labels, console)


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


@contextmanager
def renamed_settings_as_notes(console: Console) -> Iterator[None]:
    """Show warnings about old setting names as notes, each once."""
    with warnings.catch_warnings():
        show_others, noted = warnings.showwarning, set[str]()

        def show(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if category.__name__ != "RenamedSettingWarning":
                show_others(message, category, filename, lineno, file, line)
            elif str(message) not in noted:
                noted.add(str(message))
                console.note(str(message))

        warnings.showwarning = show
        yield


def run(arguments: Sequence[str], program: str = "treetop") -> int:
    """Run a command and return its exit code; an error a user can cause becomes one line on stderr."""
    console = Console(command=(program, *arguments))
    # Flags are looked up here too, for what happens before or after they are parsed.
    flags = set(arguments)
    quiet, verbose = bool(flags & {"-q", "--quiet"}), bool(flags & {"-v", "--verbose"})
    try:
        with renamed_settings_as_notes(with_verbosity(console, False, quiet)):
            code = app(list(arguments), prog_name=program, obj=console, standalone_mode=False)
        if code == INTERRUPTED:
            raise KeyboardInterrupt
        return code if isinstance(code, int) else 0
    except TreetopError as error:
        if verbose:
            traceback.print_exc()
        print_error(error)
        return 2
    except InterruptedRunError as error:
        print_error(error)
        return INTERRUPTED
    except (KeyboardInterrupt, typer.Abort):
        print_error("stopped; nothing was left half-written")
        return INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except MemoryError:
        print_error("out of memory: try --preset fast, or fewer features (--set max_features=…)")
        return 2
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        print(explain_usage_error(error), file=sys.stderr)
        return 2


def main() -> None:
    """Run the command line of this process."""
    if warning := namesake_warning():
        print_error(warning)
    as_module = Path(sys.argv[0]).name == "__main__.py"
    sys.exit(run(sys.argv[1:], "python -m treetop" if as_module else "treetop"))
