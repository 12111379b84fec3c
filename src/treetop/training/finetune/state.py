"""States of training: tensors by name, in one flat dictionary as a file holds them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

State = dict[str, Tensor]


def copied(state: Mapping[str, Tensor]) -> State:
    """A copy on the CPU, where it takes none of the device's memory."""
    return {name: tensor.detach().to("cpu", copy=True) for name, tensor in state.items()}


def to_arrays(state: Mapping[str, Tensor]) -> dict[str, np.ndarray]:
    """A state as arrays. On the CPU they share memory with its tensors."""
    return {name: tensor.detach().cpu().numpy() for name, tensor in state.items()}


def from_arrays(arrays: Mapping[str, np.ndarray]) -> State:
    """The inverse of `to_arrays`, copied: arrays may be mapped from a file and read-only."""
    return {name: torch.from_numpy(np.array(values)) for name, values in arrays.items()}
