"""Commands that make a model of another one: ensemble, compress, export-onnx, import-pecos."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from treetop.cli.completion import one_of
from treetop.cli.console import Console
from treetop.cli.usage import MODEL_HELP, JsonOption, command

ModelArgument = Annotated[Path, typer.Argument(help=MODEL_HELP, metavar="MODEL")]
TestData = Annotated[
    Optional[Path],
    typer.Option("--data", help="Data whose test split shows the cost in precision.", metavar="DATA"),
]


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
            help="How to combine the scores of the models; with the prefix raw-, their raw scores.",
            metavar="average|rank|linear-rank|sigmoid|softmax",
            autocompletion=one_of(
                ("average", "rank", "linear-rank", "sigmoid", "softmax", "raw-average", "raw-softmax")
            ),
        ),
    ] = "average",
    console: Console | None = None,
) -> None:
    """Combine trained models into one."""
    from treetop.cli.train import join_models

    join_models(models, output, combine, console)


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
    devices: Annotated[
        int,
        typer.Option(
            help="GPUs that PECOS trained on; its batch size is that of each of them.",
            metavar="N",
            min=1,
        ),
    ] = 1,
    console: Console | None = None,
) -> None:
    """Convert a model trained by PECOS, or its params.json to a preset."""
    from treetop.cli.exchange import import_from_pecos

    import_from_pecos(source, output, words, labels, console, devices)


def add_changing_commands(app: typer.Typer, group: str) -> None:
    """Add the commands of this module to `app`, listed under `group`."""
    command(app, "ensemble", group, "treetop ensemble model-1 model-2 -o both --combine rank")(
        ensemble_command
    )
    command(
        app,
        "compress",
        group,
        "treetop compress mymodel -o small --data mydata\n"
        "treetop compress mymodel -o small --max-size 200MB",
    )(compress_command)
    command(app, "export-onnx", group, "treetop export-onnx mymodel -o exported --int8 --data mydata")(
        export_onnx_command
    )
    command(
        app,
        "import-pecos",
        group,
        "treetop import-pecos pecos-model -o mymodel --words pecos-tfidf --labels labels.txt\n"
        "treetop import-pecos params.json -o mypreset.json",
    )(import_pecos_command)
