"""``treetop``: each command is a thin layer over the package. Heavy imports wait for their command."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Optional

import typer

from treetop.errors import TreetopError
from treetop.runtime.extras import namesake_warning

INTERRUPTED = 130

app = typer.Typer(
    help="Tag text with labels from a vocabulary of thousands to millions.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
data_app = typer.Typer(
    help="Look at data, convert it, fetch it.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(data_app, name="data")

Data = Annotated[Path, typer.Argument(help="A folder or file in any supported format.")]
Model = Annotated[Path, typer.Argument(help="A model folder.")]
TextColumn = Annotated[Optional[str], typer.Option("--text-column", help="Tables: texts.")]
LabelsColumn = Annotated[Optional[str], typer.Option("--labels-column", help="Tables: labels.")]


@app.command()
def demo(
    output: Annotated[
        Optional[Path], typer.Option("-o", "--output", help="Keep the model in this folder.")
    ] = None,
    linear: Annotated[bool, typer.Option("--linear", help="Only XRLinear: needs no torch.")] = False,
) -> None:
    """The whole story on data that needs no download."""
    from treetop.cli.demo import run_demo

    run_demo(output, linear)


@app.command()
def train(
    data: Data,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the model.")],
    model: Annotated[
        Optional[str], typer.Option("--model", help="xr-linear or xr-transformer; else by the preset.")
    ] = None,
    preset: Annotated[
        Optional[str], typer.Option(help="Named settings, such as fast, frozen or eurlex-4k.")
    ] = None,
    settings: Annotated[
        Optional[list[str]], typer.Option("--set", help="Change a setting: name=value.")
    ] = None,
    encoder: Annotated[
        Optional[str], typer.Option(help="Encoder of xr-transformer: Hub name or folder.")
    ] = None,
    validation: Annotated[
        str, typer.Option(help="Split to choose the best weights on; none: no such split.")
    ] = "dev",
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a run that was stopped.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Discard an earlier run and start again.")
    ] = False,
    ensemble: Annotated[
        bool, typer.Option("--ensemble", help="Train all members that the preset names.")
    ] = False,
    member: Annotated[
        Optional[list[str]], typer.Option(help="A member of an ensemble: name=value,name=value.")
    ] = None,
    combine: Annotated[
        Optional[str], typer.Option(help="Ensemble: average, rank, sigmoid or softmax.")
    ] = None,
    text_column: TextColumn = None,
    labels_column: LabelsColumn = None,
) -> None:
    """Train a model on the training split of DATA."""
    from treetop.cli.train import Order, train_model

    order = Order(
        data,
        output,
        model,
        preset,
        settings or [],
        encoder,
        validation,
        resume,
        overwrite,
        ensemble,
        member or [],
        combine,
        text_column,
        labels_column,
    )
    train_model(order)


@app.command("ensemble")
def make_ensemble(
    models: Annotated[list[Path], typer.Argument(help="Model folders, trained on the same data.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the ensemble.")],
    combine: Annotated[str, typer.Option(help="average, rank, sigmoid or softmax.")] = "average",
) -> None:
    """Put trained models together as one."""
    from treetop.cli.train import join_models

    join_models(models, output, combine)


@app.command()
def predict(
    model: Model,
    file: Annotated[str, typer.Argument(help="Texts, a line each; - is standard input.")] = "-",
    k: Annotated[int, typer.Option("-k", help="Labels a text.", min=1)] = 5,
    output: Annotated[Optional[Path], typer.Option("-o", "--output", help="File to write to.")] = None,
    form: Annotated[str, typer.Option("--format", help="jsonl or tsv.")] = "jsonl",
    beam: Annotated[Optional[int], typer.Option(help="Nodes followed at each level.")] = None,
) -> None:
    """Label names and scores for texts, a line each."""
    from treetop.cli.work import predict_file

    predict_file(model, file, k, output, form, beam)


@app.command()
def explain(
    model: Model,
    text: Annotated[str, typer.Argument(help="The text; - is standard input.")] = "-",
    label: Annotated[
        Optional[list[str]], typer.Option(help="Label to explain; else the best ones.")
    ] = None,
    k: Annotated[int, typer.Option("-k", help="How many of the best.", min=1)] = 3,
    words: Annotated[int, typer.Option(help="Words listed a label.", min=0)] = 15,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Why a text gets its labels: words, encoder, the way through the tree."""
    from treetop.cli.work import explain_text

    explain_text(model, text, label or None, k, words, json)


@app.command()
def evaluate(
    model: Model,
    data: Data,
    split: Annotated[str, typer.Option(help="Split of the data to evaluate on.")] = "test",
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    propensity: Annotated[
        str, typer.Option(help="Propensity preset: default, wikipedia or amazon.")
    ] = "default",
    threshold: Annotated[
        Optional[float], typer.Option(help="Also F1 of labels that score at least this.")
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Note the figures in the model's config and card.")
    ] = False,
    text_column: TextColumn = None,
    labels_column: LabelsColumn = None,
) -> None:
    """Every measure, overall and by label frequency."""
    from treetop.cli.work import evaluate_model

    evaluate_model(model, data, split, json, propensity, threshold, text_column, labels_column, keep)


@app.command()
def compress(
    model: Model,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the smaller model.")],
    max_size: Annotated[
        Optional[str], typer.Option(help="Drop the smallest weights until it fits: 200MB.")
    ] = None,
    weights: Annotated[str, typer.Option(help="Of weights on disk: float16 or int8.")] = "int8",
    data: Annotated[
        Optional[Path], typer.Option(help="Data whose test split shows what it costs.")
    ] = None,
) -> None:
    """Make a model smaller, and show the cost in P@k."""
    from treetop.cli.exchange import compress_model

    compress_model(model, output, max_size, weights, data)


@app.command("export-onnx")
def export_onnx(
    model: Model,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the exported model.")],
    int8: Annotated[
        bool, typer.Option("--int8", help="Encoder in eight bits: small and quick.")
    ] = False,
    data: Annotated[
        Optional[Path], typer.Option(help="Data whose test split shows what it costs.")
    ] = None,
) -> None:
    """An XR-Transformer whose encoder runs on onnxruntime: it predicts without torch."""
    from treetop.cli.exchange import export_model

    export_model(model, output, int8, data)


@app.command("import-pecos")
def import_pecos(
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


@app.command()
def serve(
    model: Model,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0: every one.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0: any that is free.", min=0, max=65535)] = 8000,
    workers: Annotated[
        Optional[int], typer.Option(help="Processes; else one a core, with an encoder fewer.", min=1)
    ] = None,
    device: Annotated[Optional[str], typer.Option(help="Of the encoder: cpu, cuda, cuda:1 …")] = None,
    token: Annotated[
        Optional[str],
        typer.Option(envvar="TREETOP_TOKEN", help="Clients must send it: Authorization: Bearer …"),
    ] = None,
    feedback: Annotated[
        Optional[Path], typer.Option(help="Keep accepted and rejected labels in this JSONL file.")
    ] = None,
    allow_origin: Annotated[
        Optional[list[str]], typer.Option(help="Another site whose pages may call (CORS).")
    ] = None,
    batch: Annotated[
        Optional[int], typer.Option(help="Texts computed together at most; else by the model.", min=1)
    ] = None,
    batch_wait: Annotated[
        float, typer.Option(help="Milliseconds a batch waits for more texts.", min=0)
    ] = 0.0,
    max_body: Annotated[float, typer.Option(help="Megabytes of a request.", min=0.001)] = 8.0,
    max_texts: Annotated[int, typer.Option(help="Texts a request.", min=1)] = 256,
    max_characters: Annotated[int, typer.Option(help="Characters a text.", min=1)] = 1_000_000,
    max_wait: Annotated[
        float, typer.Option(help="Seconds in the queue above which requests get 503.", min=0.01)
    ] = 1.5,
    timeout: Annotated[float, typer.Option(help="Seconds a request may take.", min=0.1)] = 30.0,
    access_log: Annotated[bool, typer.Option("--access-log", help="Print every request.")] = False,
) -> None:
    """A web page and an HTTP API for a model."""
    from treetop.cli.service import Order, serve_model

    order = Order(
        model,
        host,
        port,
        workers,
        device,
        token,
        feedback,
        tuple(allow_origin or ()),
        batch,
        batch_wait,
        max_body,
        max_texts,
        max_characters,
        max_wait,
        timeout,
        access_log,
    )
    raise typer.Exit(serve_model(order))


@data_app.command("inspect")
def inspect_data(
    data: Data,
    picture: Annotated[Optional[Path], typer.Option(help="Draw it, to this PNG or SVG.")] = None,
    text_column: TextColumn = None,
    labels_column: LabelsColumn = None,
) -> None:
    """What is in a file or folder."""
    from treetop.cli.inspection import inspect_dataset

    inspect_dataset(data, text_column, labels_column, picture)


@data_app.command("convert")
def convert_data(
    source: Data,
    target: Annotated[Path, typer.Argument(help="A new folder, or a .csv, .tsv, .jsonl or .parquet.")],
    form: Annotated[
        Optional[str],
        typer.Option("--to", help="Format of a folder: text-lines, jsonl, pecos, lf, xmlrepo, …"),
    ] = None,
    text_column: TextColumn = None,
    labels_column: LabelsColumn = None,
) -> None:
    """Write data in another format."""
    from treetop.cli.inspection import convert_dataset

    convert_dataset(source, target, form, text_column, labels_column)


@data_app.command("get")
def get_data(
    name: Annotated[str, typer.Argument(help="eurlex-4k, wiki10-31k, amazoncat-13k, …")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder to put it in.")] = Path("data"),
    address: Annotated[
        Optional[str], typer.Option("--from", help="Another address; {name} is replaced.")
    ] = None,
) -> None:
    """Download a public data set."""
    from treetop.cli.fetch import fetch_dataset

    fetch_dataset(name, output, address)


def main() -> None:
    """Run, and turn errors a user can cause into one line and exit code 2."""
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
