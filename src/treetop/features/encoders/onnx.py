"""Φ_dnn by onnxruntime, so that a saved model predicts without torch."""

from __future__ import annotations

import json
import logging
import shutil
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from treetop.errors import TreetopError
from treetop.features.encoders.subwords import Ragged, by_length, check_template, token_ids_of
from treetop.runtime import Runtime
from treetop.runtime.extras import require

MODEL, FACTS, TOKENIZER = "model.onnx", "onnx.json", "tokenizer.json"
# The facts, and the least that each may be.
LEAST = {"width": 1, "longest": 1, "padding": 0}
LARGEST = 1 << 20  # of numbers per vector, tokens per text and tokens in all
TOKENS_PER_BATCH = 1 << 12
# Fields of an ONNX file in which exporters leave stack traces, with paths of the exporting machine.
DEBUGGING_FIELDS = ("metadata_props", "doc_string")


class Tokenizer:
    """A tokenizer of the tokenizers library, with the attributes that `token_ids_of` reads."""

    is_fast = True

    def __init__(self, path: Path, pad_token_id: int) -> None:
        from tokenizers import Tokenizer as Backend

        self.backend_tokenizer, self.pad_token_id = Backend.from_file(str(path)), pad_token_id


class OnnxEncoder:
    """An encoder that was exported to ONNX, with its tokenizer; it runs on the CPU."""

    def __init__(self, folder: Path, max_length: int) -> None:
        onnxruntime = require("models exported to ONNX", "onnx")
        facts = read_facts(folder / FACTS)
        self.folder, self.width = folder, facts["width"]
        self.max_length = min(max_length, facts["longest"])
        self.tokenizer = Tokenizer(folder / TOKENIZER, facts["padding"])
        check_template(self.tokenizer, folder)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        providers = ["CPUExecutionProvider"]
        self.session = onnxruntime.InferenceSession(str(folder / MODEL), options, providers=providers)

    def place(self, runtime: Runtime) -> None:
        """Do nothing: an exported encoder runs on the CPU."""

    def embed_texts(
        self, texts: Iterable[str], advance: Callable[[], object] | None = None
    ) -> np.ndarray:
        """Φ_dnn of texts: float32, texts x width. Calls `advance` after each batch."""
        tokens = token_ids_of(self.tokenizer, texts, self.max_length)
        vectors = np.empty((tokens.rows, self.width), np.float32)
        for rows in by_length(tokens.lengths, TOKENS_PER_BATCH):
            found = self.session.run(None, self.inputs(tokens, rows))[0]
            if getattr(found, "shape", None) != (rows.size, self.width):
                raise TreetopError(f"{MODEL} does not make vectors of {self.width:,} numbers")
            vectors[rows] = found
            if advance:
                advance()
        return vectors

    def inputs(self, tokens: Ragged, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Padded ids and mask of some rows, the longest of which comes first; int64."""
        lengths = tokens.lengths[rows]
        mask = np.arange(lengths[0]) < lengths[:, None]
        ids = np.full(mask.shape, self.tokenizer.pad_token_id, np.int64)
        ids[mask] = np.concatenate([tokens.ids[tokens.ptr[row] : tokens.ptr[row + 1]] for row in rows])
        return {"input_ids": ids, "attention_mask": mask.astype(np.int64)}

    def save(self, folder: Path) -> None:
        """Copy the exported files to a new folder."""
        shutil.copytree(self.folder, folder)


def read_facts(path: Path) -> dict[str, int]:
    """Read what a model needs besides the ONNX file; it may be from a stranger."""
    try:
        facts = json.loads(path.read_text("utf-8"))
        chosen = {name: facts[name] for name in LEAST}
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        chosen = {}
    if not chosen or not all(
        type(value) is int and LEAST[name] <= value <= LARGEST for name, value in chosen.items()
    ):
        raise TreetopError(f"{path}: missing or damaged: copy the model folder again or train again")
    return chosen


@contextmanager
def silenced() -> Iterator[None]:
    """Without the exporter's messages to its own developers."""
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)


def export(encoder: Any, folder: Path, quantize: bool) -> None:
    """Write a transformer encoder to a new folder as ONNX, with 8-bit weights if `quantize`."""
    require("ONNX exports", "onnx-export")
    encoder = encoder.float().cpu().eval()
    folder.mkdir(parents=True)
    encoder.tokenizer.backend_tokenizer.save(str(folder / TOKENIZER))
    with silenced():
        write_onnx(encoder, folder / MODEL)
        if quantize:
            quantize_weights(folder / MODEL)
    strip_debugging_fields(folder / MODEL)
    padding = encoder.tokenizer.pad_token_id
    facts = {"width": encoder.width, "longest": encoder.max_length, "padding": padding}
    (folder / FACTS).write_text(json.dumps(facts) + "\n")


def write_onnx(encoder: Any, path: Path) -> None:
    """Write an encoder as an ONNX file for any number and length of texts."""
    import torch

    ids = torch.ones(2, 8, dtype=torch.long)
    mask = torch.tensor([[1] * 8, [1] * 5 + [0] * 3])
    batch, length = torch.export.Dim("batch"), torch.export.Dim("length")
    torch.onnx.export(
        encoder,
        (ids, mask),
        str(path),
        input_names=["input_ids", "attention_mask"],
        output_names=["vectors"],
        dynamo=True,
        external_data=False,
        verbose=False,
        dynamic_shapes={"ids": {0: batch, 1: length}, "mask": {0: batch, 1: length}},
    )


def quantize_weights(path: Path) -> None:
    """Replace an ONNX file by one with 8-bit weights."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    original = path.rename(path.with_name("float32.onnx"))
    quantize_dynamic(original, path, weight_type=QuantType.QInt8, per_channel=True)
    original.unlink()


def strip_debugging_fields(path: Path) -> None:
    """Remove stack traces and other notes of the exporter from an ONNX file."""
    import onnx

    model = onnx.load(path)
    clear_fields(model, DEBUGGING_FIELDS)
    onnx.save(model, path)


def clear_fields(message: Any, names: tuple[str, ...]) -> None:
    """Clear the fields of these names in a protocol buffer message and in all messages within it."""
    for field, value in message.ListFields():
        if field.name in names:
            message.ClearField(field.name)
        elif field.message_type is not None:
            for part in [value] if hasattr(value, "ListFields") else value:
                clear_fields(part, names)
