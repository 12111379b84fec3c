"""What the commands ``import-pecos``, ``compress`` and ``export-onnx`` do."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import treetop
from treetop.cli.console import Console
from treetop.cli.documents import documents_for, kind_name
from treetop.cli.evaluate import evaluate_split
from treetop.cli.paths import check_data, check_model, not_found
from treetop.cli.screen import comparison_rows, print_table
from treetop.data import Dataset, open_data
from treetop.data.files import lines_of
from treetop.data.labelnames import duplicate_warnings
from treetop.errors import TreetopError
from treetop.features.encoders.handle import EncoderHandle
from treetop.model import layout as store
from treetop.model.compress import compress, folder_bytes
from treetop.model.folder import read_model, write_model
from treetop.model.model import Model
from treetop.model.predictor import Predictor
from treetop.runtime import Runtime
from treetop.runtime.files import replacing_file
from treetop.runtime.memory import parse_size, size_text
from treetop.runtime.progress import Reporter
from treetop.runtime.temporary import scratch_folder


def import_from_pecos(
    source: Path,
    output: Path,
    words: Path | None,
    labels: Path | None,
    console: Console | None = None,
    devices: int = 1,
) -> None:
    """Convert a model folder of PECOS to one of treetop, or its params.json to a preset."""
    console = console or Console()
    if not source.exists():
        raise not_found(source, "file or folder")
    if source.suffix == ".json":
        import_params(source, output, console, devices)
        return
    from treetop.interop.pecos import import_model

    store.check_target(output)
    model = import_model(source, words, labels)
    model.save(output)
    reads = kind_name(model.model_.reads_texts, model.model_.needs_features)
    if model.model_.needs_features:
        reads += " (give --words to predict from texts)"
    console.message(f"{output}: {model.kind}, {len(model.classes_):,} labels, predicts from {reads}")
    if labels is not None:
        for warning in duplicate_warnings(labels, list(lines_of(labels))):
            console.note(warning.partition("; --merge")[0])
    if labels is None:
        console.note("labels are named by their numbers: give their names with --labels")


def import_params(source: Path, output: Path, console: Console, devices: int) -> None:
    """Write a preset, and note which keys have no counterpart and why."""
    from treetop.interop.pecos_params import read_params

    params = read_params(source, devices)
    about = f"From PECOS: {source.name}"
    with replacing_file(output) as out:
        json.dump({"about": about, "model": params.model, "settings": params.settings}, out, indent=2)
        out.write("\n")
    train = f"treetop train DATA {shlex.join(['--preset', str(output)])} -o MODEL"
    console.message(f"{output}: a preset of {params.model}: {train}")
    console.note(f"{len(params.honoured)} keys became {len(params.settings)} settings")
    for key, reason in params.ignored.items():
        console.note(f"left out {key}: {reason}")
    if devices == 1 and "batch" in params.settings:
        batch = params.settings["batch"]
        console.note(f"batch is {batch}: if PECOS trained on several GPUs, give --devices")


def compress_model(
    folder: Path,
    output: Path,
    max_size: str | None,
    storage: str,
    data: Path | None,
    console: Console | None = None,
    as_json: bool = False,
) -> None:
    """Save a smaller model; print sizes, and metrics before and after if there is data."""
    console = console or Console()
    max_bytes = None if max_size is None else parse_size(max_size)
    dataset = checked_inputs(folder, output, data)
    with console.progress() as report:
        report.step("compressing")
        smaller, threshold = compress(read_model(folder), folder, max_bytes, storage, Runtime())
        report.step("saving")
        write_model(smaller, output)
        compared = before_and_after(folder, output, dataset, report)
    if as_json:
        console.json({"output": str(output), **compared, "pruned_below": float(threshold)})
        return
    print_before_and_after(compared)
    if threshold:
        console.result(f"\nweights below {threshold:.4g} were dropped")


def checked_inputs(folder: Path, output: Path, data: Path | None) -> Dataset | None:
    """The data set, after a check of all paths: before any work is done."""
    store.check_target(output)
    check_model(folder)
    if data is None:
        return None
    check_data(data)
    return open_data(data)


def before_and_after(
    before: Path, after: Path, dataset: Dataset | None, report: Reporter
) -> dict[str, dict[str, Any]]:
    """Size in bytes of two model folders, and their metrics if there is data."""
    compared: dict[str, dict[str, Any]] = {}
    for name, folder in (("before", before), ("after", after)):
        compared[name] = {"bytes": folder_bytes(folder)}
        if dataset is not None:
            split = dataset.split("test", "train")
            estimator = treetop.load(str(folder))
            split = documents_for(estimator.model_, split, dataset.format, report)
            compared[name] |= evaluate_split(estimator, split, dataset.label_names, report=report)
    return compared


def print_before_and_after(compared: dict[str, dict[str, Any]]) -> None:
    """Print sizes, and the main metrics if there are any, one column per model."""
    rows = [["", *compared], ["size", *(size_text(result["bytes"]) for result in compared.values())]]
    if all("documents" in result for result in compared.values()):
        rows += comparison_rows(list(compared.values()))
    print_table(rows)


def export_model(
    folder: Path,
    output: Path,
    int8: bool,
    data: Path | None,
    console: Console | None = None,
    as_json: bool = False,
) -> None:
    """Save a model whose encoder is an ONNX file; print as `compress_model` does."""
    console = console or Console()
    dataset = checked_inputs(folder, output, data)
    with console.progress() as report, scratch_folder("export") as work:
        report.step("exporting")
        write_model(exported(read_model(folder), folder, work, int8), output)
        compared = before_and_after(folder, output, dataset, report)
    if as_json:
        console.json({"output": str(output), **compared})
    else:
        print_before_and_after(compared)


def exported(model: Predictor, folder: Path, work: Path, int8: bool) -> Model:
    """The model of `folder` with its encoder exported to ONNX into `work`."""
    from treetop.features.encoders.onnx import OnnxEncoder, export

    if isinstance(model, Model) and (handle := model.feature_map.encoder) is not None:
        encoder = handle.open(Runtime(device="cpu", precision="fp32"))
        if hasattr(encoder, "model"):
            export(encoder, work / "encoder", int8)
            onnx = OnnxEncoder(work / "encoder", handle.max_length)
            return replace(
                model,
                feature_map=replace(
                    model.feature_map, encoder=EncoderHandle.holding(onnx, handle.max_length)
                ),
            )
    raise TreetopError(
        f"{folder}: holds no transformer encoder to export: give a model of --model xr-transformer"
    )
