"""What the commands ``import-pecos``, ``compress`` and ``export-onnx`` do."""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import treetop
from treetop.cli.screen import comparison_rows, print_table
from treetop.cli.work import evaluate_split
from treetop.data import Dataset, open_data
from treetop.errors import TreetopError
from treetop.features.encoders.handle import EncoderHandle
from treetop.model import layout as store
from treetop.model.compress import compress, folder_bytes, parse_size
from treetop.model.folder import read_model, write_model
from treetop.model.model import Model, Predictor
from treetop.runtime import Runtime
from treetop.runtime.files import replacing_file


def import_from_pecos(source: Path, output: Path, words: Path | None, labels: Path | None) -> None:
    """A model folder of PECOS as one of treetop, or its params.json as a preset."""
    if source.suffix == ".json":
        import_params(source, output)
        return
    from treetop.interop.pecos import import_model

    store.check_target(output)
    model = import_model(source, words, labels)
    model.save(output)
    what = "texts" if model.model_.reads_texts else "features (give --words to predict from texts)"
    print(f"{output}: {model.kind}, {len(model.classes_):,} labels, predicts from {what}")
    if labels is None:
        print("treetop: labels are called by their numbers: --labels gives names", file=sys.stderr)


def import_params(source: Path, output: Path) -> None:
    """Write a preset and say which keys were left out."""
    from treetop.interop.pecos_params import read_params

    found = read_params(source)
    made = {"about": f"From PECOS: {source.name}", "model": found.model, "settings": found.settings}
    with replacing_file(output) as out:
        json.dump(made, out, indent=2)
        out.write("\n")
    print(f"{output}: a preset of {found.model}: treetop train DATA --preset {output} -o MODEL")
    for key, reason in found.ignored.items():
        print(f"treetop: left out {key}: {reason}", file=sys.stderr)


def compress_model(
    folder: Path, output: Path, max_size: str | None, storage: str, data: Path | None
) -> None:
    """Save a smaller model and print sizes, and precision before and after if there is data."""
    store.check_target(output)
    room = None if max_size is None else parse_size(max_size)
    dataset = None if data is None else open_data(data)
    runtime = Runtime()
    smaller, threshold = compress(read_model(folder), folder, room, storage, runtime)
    write_model(smaller, output)
    print_before_and_after(folder, output, dataset)
    if threshold:
        print(f"\nweights below {threshold:.4g} were dropped")


def print_before_and_after(before: Path, after: Path, dataset: Dataset | None) -> None:
    """Sizes of two model folders, and their precision if there is data."""
    folders = (before, after)
    rows = [["", "before", "after"], ["MB", *(f"{folder_bytes(f) / 1e6:.1f}" for f in folders)]]
    if dataset is not None:
        split = dataset.split("test", "train")
        models = [treetop.load(str(folder)) for folder in folders]
        before_and_after = [evaluate_split(model, split, dataset.label_names) for model in models]
        rows += comparison_rows(before_and_after)
    print_table(rows)


def export_model(folder: Path, output: Path, int8: bool, data: Path | None) -> None:
    """Save a model whose encoder is an ONNX file."""
    store.check_target(output)
    dataset = None if data is None else open_data(data)
    with tempfile.TemporaryDirectory() as work:
        write_model(exported(read_model(folder), folder, Path(work), int8), output)
    print_before_and_after(folder, output, dataset)


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
    raise TreetopError(f"{folder}: holds no transformer encoder to export")
