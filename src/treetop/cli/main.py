"""``treetop``: each command is a thin layer over the package. Heavy imports wait for their command."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Annotated, Optional, TextIO

import typer

from treetop.cli.data import data_app
from treetop.cli.options import DemoOptions, EvaluateOptions, TrainOptions, options_from
from treetop.errors import TreetopError
from treetop.runtime.extras import namesake_warning, require
from treetop.serve.options import ServiceOptions

INTERRUPTED = 130

app = typer.Typer(
    help="Tag text with labels from a vocabulary of thousands to millions.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(data_app, name="data")

ModelArgument = Annotated[Path, typer.Argument(help="A model folder.")]
TestData = Annotated[
    Optional[Path], typer.Option("--data", help="Data whose test split shows what it costs.")
]


@app.command("demo")
@options_from(DemoOptions)
def demo_command(options: DemoOptions) -> None:
    """Train, compare and explain models on 4,000 records of scientific databases."""
    from treetop.cli.demo import run_demo

    run_demo(options)


@app.command("train")
@options_from(TrainOptions)
def train_command(options: TrainOptions) -> None:
    """Train a model on the training split of DATA."""
    from treetop.cli.train import train_model

    train_model(options)


@app.command("ensemble")
def ensemble_command(
    models: Annotated[list[Path], typer.Argument(help="Model folders, trained on the same data.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the ensemble.")],
    combine: Annotated[str, typer.Option(help="average, rank, sigmoid or softmax.")] = "average",
) -> None:
    """Put trained models together as one."""
    from treetop.cli.train import join_models

    join_models(models, output, combine)


@app.command("predict")
def predict_command(
    model: ModelArgument,
    file: Annotated[str, typer.Argument(help="Texts, a line each; - is standard input.")] = "-",
    k: Annotated[int, typer.Option("-k", help="Labels per text.", min=1)] = 5,
    output: Annotated[Optional[Path], typer.Option("-o", "--output", help="File to write to.")] = None,
    form: Annotated[str, typer.Option("--format", help="jsonl or tsv.")] = "jsonl",
    beam: Annotated[Optional[int], typer.Option(help="Nodes followed at each level.")] = None,
) -> None:
    """Label names and scores for texts, a line each."""
    from treetop.cli.work import predict_file

    predict_file(model, file, k=k, output=output, form=form, beam=beam)


@app.command("explain")
def explain_command(
    model: ModelArgument,
    text: Annotated[str, typer.Argument(help="The text; - is standard input.")] = "-",
    label: Annotated[
        Optional[list[str]], typer.Option(help="Label to explain; else the best ones.")
    ] = None,
    k: Annotated[int, typer.Option("-k", help="How many of the best.", min=1)] = 3,
    words: Annotated[int, typer.Option(help="Words listed a label.", min=0)] = 15,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Why a text gets its labels: words, encoder, the path through the tree."""
    from treetop.cli.work import explain_text

    explain_text(model, text, labels=label or None, k=k, words=words, as_json=json)


@app.command("evaluate")
@options_from(EvaluateOptions)
def evaluate_command(options: EvaluateOptions) -> None:
    """Every measure, overall and by label frequency."""
    from treetop.cli.work import evaluate_model

    evaluate_model(options)


@app.command("compress")
def compress_command(
    model: ModelArgument,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the smaller model.")],
    max_size: Annotated[
        Optional[str], typer.Option(help="Drop the smallest weights until it fits: 200MB.")
    ] = None,
    weights: Annotated[str, typer.Option(help="Of weights on disk: float16 or int8.")] = "int8",
    data: TestData = None,
) -> None:
    """Make a model smaller, and show the cost in P@k."""
    from treetop.cli.exchange import compress_model

    compress_model(model, output, max_size, weights, data)


@app.command("export-onnx")
def export_onnx_command(
    model: ModelArgument,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the exported model.")],
    int8: Annotated[
        bool, typer.Option("--int8", help="Encoder in eight bits: small and quick.")
    ] = False,
    data: TestData = None,
) -> None:
    """An XR-Transformer whose encoder runs on onnxruntime: it predicts without torch."""
    from treetop.cli.exchange import export_model

    export_model(model, output, int8, data)


@app.command("import-pecos")
def import_pecos_command(
    source: Annotated[Path, typer.Argument(help="A model folder or a params.json of PECOS.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Model folder, or preset (.json).")],
    words: Annotated[
        Optional[Path], typer.Option(help="Folder of PECOS's TF-IDF, to predict from texts.")
    ] = None,
    labels: Annotated[Optional[Path], typer.Option(help="Names of the labels, a line each.")] = None,
) -> None:
    """A model that PECOS trained as a model of treetop, or its params.json as a preset."""
    from treetop.cli.exchange import import_from_pecos

    import_from_pecos(source, output, words, labels)


@app.command("serve")
@options_from(ServiceOptions)
def serve_command(options: ServiceOptions) -> None:
    """A web page and an HTTP API for a model."""
    # Not prometheus_client: workers import it once PROMETHEUS_MULTIPROC_DIR is set.
    require("the web page and the HTTP API", "serve", "fastapi", "uvicorn", "httptools")
    from treetop.serve.run import serve

    raise typer.Exit(serve(options))


def note_renamed_settings() -> None:
    """Let warnings of old setting names be notes like any other, said once."""
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
            print(f"treetop: {message}", file=sys.stderr)

    warnings.showwarning = show


def main() -> None:
    """Run, and turn errors a user can cause into one line and exit code 2."""
    note_renamed_settings()
    if warning := namesake_warning():
        print(f"treetop: {warning}", file=sys.stderr)
    try:
        code = app(standalone_mode=False)
        if code == INTERRUPTED:
            raise KeyboardInterrupt
        sys.exit(code if isinstance(code, int) else 0)
    except TreetopError as error:
        print(f"treetop: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(2)
    except (KeyboardInterrupt, typer.Abort):
        print("treetop: stopped; nothing was left half-written", file=sys.stderr)
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except MemoryError:
        print("treetop: out of memory: try --preset fast or fewer features", file=sys.stderr)
        sys.exit(2)
    except Exception as error:
        if not hasattr(error, "show"):
            raise
        # A wrong option or argument: typer's own message.
        error.show()
        sys.exit(2)
