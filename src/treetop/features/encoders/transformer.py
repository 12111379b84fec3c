"""Φ_dnn by a text encoder of the transformers library."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from treetop.errors import TreetopError
from treetop.features.encoders.attention import RECORDABLE, never_wait
from treetop.features.encoders.devices import PRECISIONS, DeviceRagged, in_fitting_parts, pick_device
from treetop.features.encoders.first_token import attend_with_first_token
from treetop.features.encoders.hub import POOLING
from treetop.features.encoders.library import load_tokenizer, quiet
from treetop.features.encoders.pretrained import load_transformer
from treetop.features.encoders.replay import Replay
from treetop.features.encoders.sources import find_encoder
from treetop.features.encoders.subwords import Ragged, by_length, set_truncation, token_ids_of
from treetop.runtime import Runtime

# Tokens per batch without gradients, by device type.
TOKENS_PER_BATCH = {"cuda": 1 << 18, "cpu": 1 << 12}
OTHER_DEVICE_TOKENS = 1 << 14


class Documents(Protocol):
    """Documents to embed: their token ids, or what takes the place of these."""

    @property
    def lengths(self) -> np.ndarray:
        """Number of tokens of each document, int64."""

    @property
    def rows(self) -> int:
        """Number of documents."""


class Batched(Protocol):
    """Documents of which batches are gathered on the device."""

    def padded(self, rows: Tensor, width: int, full: bool) -> tuple[Tensor, Tensor | None]:
        """What the model reads of some documents, and their mask; see `DeviceRagged`."""


class Encoder(nn.Module):
    """A transformer, its tokenizer and the pooling of token vectors to one vector per text.

    `source` is a folder or any other name that `find_encoder` takes.
    """

    def __init__(
        self,
        source: str | Path,
        pooling: str = "auto",
        max_length: int = 256,
        dropout: float = 0.1,
        tokenizer: Any = None,
    ) -> None:
        super().__init__()
        name = str(source)
        folder = find_encoder(name)
        self.tokenizer = load_tokenizer(name, folder) if tokenizer is None else tokenizer
        self.model: Any = load_transformer(name, folder, dropout)
        self.pooling = default_pooling(folder, self.model) if pooling == "auto" else pooling
        if self.pooling == "pooler" and getattr(self.model, "pooler", None) is None:
            raise TreetopError(f"encoder {name!r} has no pooler: choose mean, cls or last pooling")
        attend_with_first_token(self.model, self.pooling)
        self.max_length = min(max_length, longest_input(self.tokenizer, self.model))
        if self.max_length < 1:
            raise TreetopError(f"encoder {name!r}: its longest input is {self.max_length} tokens")
        self.compute = torch.float32  # dtype of inference
        self._copy: list[Any] = []  # the model in that dtype, if its weights have another one
        self._replay: tuple[Any, Replay] | None = None
        # device and dtype that "auto" in a runtime stands for
        self._home: tuple[torch.device, torch.dtype] | None = None

    @property
    def width(self) -> int:
        """Columns of Φ_dnn."""
        return int(getattr(self.model.config, "hidden_size", 0) or self.model.config.d_model)

    @property
    def layers(self) -> int:
        """Number of layers."""
        return int(getattr(self.model.config, "num_hidden_layers", 12))

    def forward(self, ids: Tensor, mask: Tensor | None, model: nn.Module | None = None) -> Tensor:
        """Vectors (float32, rows x width) of padded ids; `mask` is 1 at tokens, None if all are."""
        output = self.outputs(ids, mask, model or self.model)
        tokens: Tensor = output[0]
        if self.pooling == "pooler":
            pooled: Tensor = output.pooler_output
            return pooled.float()
        if self.pooling == "cls":
            return tokens[:, 0].float()
        if self.pooling in ("last", "summary"):
            last = tokens[:, -1]
            if mask is not None:
                last = tokens[torch.arange(len(tokens), device=tokens.device), mask.sum(1) - 1]
            return torch.tanh(last.float()) if self.pooling == "summary" else last.float()
        if mask is None:
            return tokens.float().mean(1)
        counts = mask.sum(1)
        weights = (mask / counts[:, None]).to(tokens.dtype)
        return torch.bmm(weights[:, None], tokens)[:, 0].float()

    def outputs(self, ids: Tensor, mask: Tensor | None, model: Any) -> Any:
        """What the model computes from padded ids; the vectors of the tokens come first."""
        segments = {}
        if self.pooling == "summary" and self.model.config.model_type == "xlnet":
            segments["token_type_ids"] = xlnet_segments(ids, mask)
        return model(input_ids=ids, attention_mask=mask, **segments)

    def tokens(self, texts: Iterable[str]) -> Ragged:
        """Token ids of texts, truncated to `max_length`."""
        return token_ids_of(self.tokenizer, texts, self.max_length)

    def embed_texts(
        self, texts: Iterable[str], advance: Callable[[], object] | None = None
    ) -> np.ndarray:
        """Φ_dnn of texts: float32, texts x width. Calls `advance` after each batch."""
        return self.embed(self.tokens(texts), advance)

    @torch.inference_mode()
    def embed(
        self,
        tokens: Documents,
        advance: Callable[[], object] | None = None,
        batches: Iterable[np.ndarray] | None = None,
    ) -> np.ndarray:
        """Φ_dnn of token ids: float32, rows x width, without dropout. Calls `advance` per batch.

        `batches` are the only ones of `rows_of_batches` to process; other rows are 0.
        """
        was_training = self.training
        if was_training:
            self.eval()
        model, device = self.for_inference(), next(self.parameters()).device
        on_device = self.prepared(tokens, device)
        one_text_on_gpu = tokens.rows == 1 and device.type == "cuda" and not was_training
        recordable = batches is None and model.config.model_type in RECORDABLE
        if one_text_on_gpu and recordable and isinstance(tokens, Ragged):
            return self.replay(model, device)(np.asarray(tokens.ids))
        vectors = torch.zeros(tokens.rows, self.width, device=device)
        for rows in self.rows_of_batches(tokens) if batches is None else batches:
            lengths = tokens.lengths[rows]
            width, full = int(lengths[0]), bool(lengths[0] == lengths[-1])
            numbers = torch.from_numpy(rows).to(device)

            def embed_part(
                part: slice, numbers: Tensor = numbers, width: int = width, full: bool = full
            ) -> None:
                rows_of_part = numbers[part]
                vectors[rows_of_part] = self(*on_device.padded(rows_of_part, width, full), model)

            in_fitting_parts(embed_part, rows.size, rows.size)
            if advance:
                advance()
        if was_training:
            self.train()
        return vectors.cpu().numpy()

    def prepared(self, tokens: Documents, device: torch.device) -> Batched:
        """Documents on the device, from which batches are gathered; raise if ids are unknown."""
        assert isinstance(tokens, Ragged)
        self.check_ids(tokens.ids)
        return DeviceRagged(tokens, device, self.tokenizer.pad_token_id)

    def check_ids(self, ids: np.ndarray) -> None:
        """Raise unless the model has a vector for each token: a GPU that misses one is lost."""
        known = int(self.model.get_input_embeddings().num_embeddings)
        if max(ids.max(initial=0), self.tokenizer.pad_token_id or 0) >= known:
            raise TreetopError(f"the tokenizer has tokens beyond the {known:,} that its model knows")

    def replay(self, model: nn.Module, device: torch.device) -> Replay:
        """The recorded kernels that encode one text at a time on a GPU."""
        place = (model, next(model.parameters()).data_ptr())
        if self._replay is None or self._replay[0] != place:
            never_wait(model)
            encode = partial(self.forward, model=model)
            self._replay = place, Replay(encode, self.max_length, self.tokenizer.pad_token_id, device)
        return self._replay[1]

    def __getstate__(self) -> dict[str, Any]:
        """The state to pickle, without recorded kernels: those belong to this process."""
        return {**self.__dict__, "_replay": None}

    @property
    def batch_tokens(self) -> int:
        """Tokens per batch without gradients, including padding."""
        return TOKENS_PER_BATCH.get(next(self.parameters()).device.type, OTHER_DEVICE_TOKENS)

    def batches(self, tokens: Documents) -> int:
        """Number of batches in which `embed` processes these rows."""
        return sum(1 for _ in self.rows_of_batches(tokens))

    def rows_of_batches(self, tokens: Documents) -> Iterator[np.ndarray]:
        """The rows of each batch of `embed`.

        In 16 bits, padding changes how attention rounds, by enough to change labels. On a CPU, a batch
        therefore has none, which costs nothing there: a text gets the same vector alone and in a batch.
        """
        on_cpu = next(self.parameters()).device.type == "cpu"
        return by_length(tokens.lengths, self.batch_tokens, on_cpu and self.compute == torch.bfloat16)

    def for_inference(self) -> Any:
        """The model in the dtype `compute`: itself, or a copy that is kept."""
        if next(self.model.parameters()).dtype == self.compute:
            return self.model
        if not self._copy:
            self._copy = [copy.deepcopy(self.model).to(self.compute).eval()]
        return self._copy[0]

    def place(self, runtime: Runtime) -> None:
        """Move to the device and the precision of `runtime`, unless those are auto."""
        here = next(self.parameters()).device
        home, compute = self._home = self._home or (here, self.compute)
        device = home if runtime.device == "auto" else pick_device(runtime.device)
        if (device.type, device.index or 0) != (here.type, here.index or 0):
            self._copy, self._replay = [], None
            self.to(device)
        if runtime.precision != "auto":
            compute = PRECISIONS[runtime.precision]
        if compute != self.compute:
            self._copy, self.compute = [], compute

    def take_weights(self, weights: dict[str, Tensor]) -> None:
        """Copy float32 weights, by parameter name, into the model."""
        self._copy, self._replay = [], None
        self.float()
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                if name in weights:
                    parameter.copy_(weights[name])

    def save(self, folder: Path) -> None:
        """Write a plain Hugging Face folder: float32 weights, tokenizer and pooling."""
        with quiet():
            self.model.save_pretrained(folder)
            set_truncation(self.tokenizer, self.max_length)  # whatever it has tokenized before
            self.tokenizer.save_pretrained(folder)
        write_pooling(folder, self.pooling, self.width)


def xlnet_segments(ids: Tensor, mask: Tensor | None) -> Tensor:
    """The segments that XLNet's tokenizer gives a text: 0, and 2 for the last token, <cls>."""
    last = (
        torch.full_like(ids[:, :1], ids.shape[1] - 1) if mask is None else mask.sum(1, keepdim=True) - 1
    )
    return torch.zeros_like(ids).scatter_(1, last, 2)


def longest_input(tokenizer: Any, model: Any) -> int:
    """The longest input in tokens that the tokenizer and the model's positions allow."""
    limits = [int(tokenizer.model_max_length)]
    positions = getattr(model.config, "max_position_embeddings", None)
    if isinstance(positions, int) and positions > 0:
        # RoBERTa and its relatives number positions from the padding token's id upwards.
        offset = getattr(getattr(model, "embeddings", None), "padding_idx", None)
        limits.append(positions - (offset + 1 if offset else 0))
    return min(limits)


def default_pooling(folder: Path, model: Any) -> str:
    """The pooling stated in the encoder's folder; else the last token for XLNet, or the mean."""
    if (path := folder / POOLING).is_file():
        stated = json.loads(path.read_text("utf-8"))
        if stated.get("pooling_mode_cls_token"):
            return "cls"
        return "last" if stated.get("pooling_mode_lasttoken") else "mean"
    return "last" if model.config.model_type == "xlnet" else "mean"


def write_pooling(folder: Path, pooling: str, width: int) -> None:
    """Write the pooling in the file that sentence-transformers has for it."""
    settings = {
        "word_embedding_dimension": width,
        "pooling_mode_cls_token": pooling == "cls",
        "pooling_mode_mean_tokens": pooling == "mean",
        "pooling_mode_lasttoken": pooling == "last",
    }
    (folder / POOLING).parent.mkdir()
    (folder / POOLING).write_text(json.dumps(settings, indent=2) + "\n", "utf-8")
