"""The lower layers of a transformer and the upper ones, each as an encoder of its own.

Where only the upper layers are fine-tuned, what the lower ones compute for a document stays the same:
it is computed once and stored.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from treetop.errors import TreetopError
from treetop.features.encoders.devices import DeviceRagged
from treetop.features.encoders.subwords import Ragged
from treetop.features.encoders.transformer import Batched, Documents, Encoder
from treetop.runtime.spool import ArrayFile

Part = TypeVar("Part", bound=Encoder)
# Where families whose layers read nothing but token vectors and a mask keep them.
STACKS = {
    "bert": "encoder",
    "roberta": "encoder",
    "xlm-roberta": "encoder",
    "camembert": "encoder",
    "electra": "encoder",
    "mpnet": "encoder",
    "distilbert": "transformer",
}
# Numpy has no bfloat16: its bits are stored.
STORED = {torch.float32: np.dtype(np.float32), torch.bfloat16: np.dtype(np.int16)}


class Activations(NamedTuple):
    """Token vectors of documents, on disk where they are large; used like the documents' `Ragged`."""

    tokens: Ragged
    vectors: ArrayFile
    offsets: np.ndarray  # int64, bytes, by document
    width: int
    dtype: torch.dtype

    @property
    def lengths(self) -> np.ndarray:
        """Number of tokens of each document, int64."""
        return self.tokens.lengths

    @property
    def rows(self) -> int:
        """Number of documents."""
        return self.tokens.rows

    def of(self, row: int) -> Tensor:
        """The token vectors of a document: tokens x width."""
        length = int(self.tokens.ptr[row + 1] - self.tokens.ptr[row])
        values = self.vectors.read(int(self.offsets[row]), length * self.width, STORED[self.dtype])
        return torch.from_numpy(values).view(self.dtype).view(length, self.width)

    def padded(self, rows: Tensor, width: int, full: bool) -> tuple[Tensor, Tensor | None]:
        """Token vectors of some documents, rows x tokens x width, and their mask, as `DeviceRagged`."""
        numbers = rows.tolist()
        padded = torch.zeros(len(numbers), width, self.width, dtype=self.dtype)
        for place, row in enumerate(numbers):
            own = self.of(row)[:width]
            padded[place, : len(own)] = own
        if full:
            return padded.to(rows.device), None
        lengths = torch.from_numpy(self.lengths[numbers])[:, None]
        mask = (torch.arange(width) < lengths).long()
        return padded.to(rows.device), mask.to(rows.device)


class LowerLayers(Encoder):
    """The embeddings of an encoder and its layers below the `tuned` ones, which do not change."""

    @classmethod
    def of(cls, encoder: Encoder, tuned: int) -> LowerLayers:
        """Share the weights of an encoder."""
        layers = layers_of(encoder.model)
        part = model_with_layers(encoder.model, dict(list(layers.named_children())[:-tuned]))
        part.pooler = None
        return sharing(cls, encoder, part).eval()

    @torch.inference_mode()
    def activations(self, tokens: Ragged) -> Activations:
        """Compute the token vectors of documents, in batches as `embed` does."""
        self.check_ids(tokens.ids)
        model, device = self.for_inference(), next(self.parameters()).device
        on_device = DeviceRagged(tokens, device, self.tokenizer.pad_token_id)
        vectors, offsets = ArrayFile(), np.zeros(tokens.rows, np.int64)
        for rows in self.rows_of_batches(tokens):
            lengths = tokens.lengths[rows]
            full = bool(lengths[0] == lengths[-1])
            ids, mask = on_device.padded(torch.from_numpy(rows).to(device), int(lengths[0]), full)
            computed = self.outputs(ids, mask, model)[0].cpu().contiguous()
            for row, length, own in zip(rows, lengths, computed, strict=True):
                stored = own[:length].view(torch.int16) if own.dtype == torch.bfloat16 else own[:length]
                offsets[row] = vectors.append(stored.numpy())
        return Activations(tokens, vectors, offsets, self.width, self.compute)


class UpperLayers(Encoder):
    """The upper layers of an encoder: from the token vectors of those below to Φ_dnn.

    They have the names that they have in the whole encoder, and share its weights.
    """

    @classmethod
    def of(cls, encoder: Encoder, tuned: int) -> UpperLayers:
        """Share the weights of the last `tuned` layers of an encoder, and of its pooler."""
        layers = layers_of(encoder.model)
        part = model_with_layers(encoder.model, dict(list(layers.named_children())[-tuned:]))
        part.embeddings = GivenVectors()
        if hasattr(part, "embeddings_project"):
            part.embeddings_project = nn.Identity()
        return sharing(cls, encoder, part)

    @property
    def layers(self) -> int:
        """Number of layers."""
        return len(layers_of(self.model))

    def outputs(self, ids: Tensor, mask: Tensor | None, model: Any) -> Any:
        """What the model computes from token vectors, which take the place of ids."""
        return model(inputs_embeds=ids, attention_mask=mask)

    def prepared(self, tokens: Documents, device: torch.device) -> Batched:
        """Documents from which batches are gathered."""
        assert isinstance(tokens, Activations)
        return tokens


class GivenVectors(nn.Module):
    """Takes the place of a model's embeddings: returns the vectors that it is given."""

    def forward(
        self, input_ids: None = None, inputs_embeds: Tensor | None = None, *_: Any, **__: Any
    ) -> Tensor | None:
        """Return `inputs_embeds`."""
        return inputs_embeds


def check_tuned_layers(encoder: Encoder, tuned: int) -> None:
    """Raise unless the last `tuned` layers of an encoder can be fine-tuned alone."""
    family = encoder.model.config.model_type
    if family not in STACKS:
        raise TreetopError(
            f"tuned_layers={tuned}: the layers of {family} encoders cannot be tuned apart: leave it "
            f"out, or choose an encoder of one of these families: {', '.join(STACKS)}"
        )
    count = len(layers_of(encoder.model))
    if tuned > count:
        raise TreetopError(f"tuned_layers={tuned}, but the encoder has {count} layers: leave it out")


def layers_of(model: Any) -> nn.ModuleList:
    """The layers of a model, from the lowest to the highest."""
    layers: nn.ModuleList = getattr(model, STACKS[model.config.model_type]).layer
    return layers


def model_with_layers(model: Any, layers: dict[str, nn.Module]) -> Any:
    """A model with some of the layers of another one and all its other parts; nothing is copied."""
    stack = STACKS[model.config.model_type]
    chosen = nn.ModuleList()
    for number, layer in layers.items():
        chosen.add_module(number, layer)
    part = shallow(model)
    setattr(part, stack, shallow(getattr(model, stack)))
    getattr(part, stack).layer = chosen
    return part


def shallow(module: nn.Module) -> Any:
    """A module with the same submodules and weights, of which others can take the place."""
    twin = copy.copy(module)
    twin._modules = dict(module._modules)
    return twin


def sharing(kind: type[Part], encoder: Encoder, model: nn.Module) -> Part:
    """An encoder of this kind around a part of the model of another."""
    part = kind.__new__(kind)
    part.__dict__.update(encoder.__dict__, _modules=dict(encoder._modules), _copy=[], _replay=None)
    part.model = model
    return part
