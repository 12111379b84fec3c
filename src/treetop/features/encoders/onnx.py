"""Φ_dnn by onnxruntime: a saved model predicts without torch."""

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

from treetop.features.encoders.subwords import Ragged, token_ids_of
from treetop.runtime import Runtime
from treetop.runtime.extras import require

MODEL, FACTS, TOKENIZER = "model.onnx", "onnx.json", "tokenizer.json"
TOKENS_A_BATCH = 1 << 12


class Tokenizer:
    """The library below the transformers library's fast tokenizers, as `token_ids_of` wants it."""

    is_fast = True

    def __init__(self, path: Path, pad_token_id: int) -> None:
        from tokenizers import Tokenizer as Backend

        self.backend_tokenizer, self.pad_token_id = Backend.from_file(str(path)), pad_token_id


class OnnxEncoder:
    """An encoder that was exported, with its tokenizer."""

    def __init__(self, folder: Path, max_length: int) -> None:
        onnxruntime = require("models exported to ONNX", "onnx")
        facts = json.loads((folder / FACTS).read_text("utf-8"))
        self.folder, self.width = folder, int(facts["width"])
        self.max_length = min(max_length, int(facts["longest"]))
        self.tokenizer = Tokenizer(folder / TOKENIZER, int(facts["padding"]))
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        providers = ["CPUExecutionProvider"]
        self.session = onnxruntime.InferenceSession(str(folder / MODEL), options, providers=providers)

    def tokens(self, texts: Iterable[str]) -> Ragged:
        """Token ids of texts, cut to the encoder's length."""
        return token_ids_of(self.tokenizer, texts, self.max_length)

    def place(self, runtime: Runtime) -> None:
        """Nothing to do: what was exported runs on the CPU."""

    def embed_texts(self, texts: Iterable[str], advance: Callable[[], Any] | None = None) -> np.ndarray:
        """Φ_dnn of texts."""
        return self.embed(self.tokens(texts))

    def embed(self, tokens: Ragged) -> np.ndarray:
        """Φ_dnn of every row, float32; rows of about the same length go together."""
        vectors = np.empty((tokens.rows, self.width), np.float32)
        lengths = np.diff(tokens.ptr)
        order, start = np.argsort(-lengths, kind="stable"), 0
        while start < order.size:
            width = int(lengths[order[start]])
            rows = order[start : start + max(1, TOKENS_A_BATCH // width)]
            start += rows.size
            mask = np.arange(width) < lengths[rows][:, None]
            ids = np.full(mask.shape, self.tokenizer.pad_token_id, np.int64)
            ids[mask] = np.concatenate([tokens.ids[tokens.ptr[r] : tokens.ptr[r + 1]] for r in rows])
            given = {"input_ids": ids, "attention_mask": mask.astype(np.int64)}
            vectors[rows] = self.session.run(None, given)[0]
        return vectors

    def save(self, folder: Path) -> None:
        """Copy what was exported."""
        shutil.copytree(self.folder, folder)


@contextmanager
def silenced() -> Iterator[None]:
    """Without the notes that the exporter makes for its authors."""
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)


def export(encoder: Any, folder: Path, quantize: bool) -> None:
    """Write a transformer encoder as ONNX, in eight bits if wanted."""
    require("ONNX exports", "onnx-export")
    import torch

    encoder = encoder.float().cpu().eval()
    folder.mkdir(parents=True)
    encoder.tokenizer.backend_tokenizer.save(str(folder / TOKENIZER))
    ids = torch.ones(2, 8, dtype=torch.long)
    mask = torch.tensor([[1] * 8, [1] * 5 + [0] * 3])
    batch, length = torch.export.Dim("batch"), torch.export.Dim("length")
    names = ["input_ids", "attention_mask"]
    with silenced():
        torch.onnx.export(
            encoder,
            (ids, mask),
            str(folder / MODEL),
            input_names=names,
            output_names=["vectors"],
            dynamo=True,
            external_data=False,
            verbose=False,
            dynamic_shapes={"ids": {0: batch, 1: length}, "mask": {0: batch, 1: length}},
        )
        if quantize:
            from onnxruntime.quantization import QuantType, quantize_dynamic

            whole = folder / "whole.onnx"
            (folder / MODEL).rename(whole)
            quantize_dynamic(whole, folder / MODEL, weight_type=QuantType.QInt8, per_channel=True)
            whole.unlink()
    padding = encoder.tokenizer.pad_token_id
    facts = {"width": encoder.width, "longest": encoder.max_length, "padding": padding}
    (folder / FACTS).write_text(json.dumps(facts) + "\n")
