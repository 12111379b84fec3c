"""Training states: flat dictionaries of named tensors, as in a file."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

State = dict[str, Tensor]


def copied(state: Mapping[str, Tensor]) -> State:
    """Copy a state to the CPU, so that it takes no memory of the device."""
    return {name: tensor.detach().to("cpu", copy=True) for name, tensor in state.items()}


def cpu_state(state: Mapping[str, Tensor]) -> State:
    """Return a state on the CPU; tensors that are there already are not copied."""
    return {name: tensor.detach().cpu() for name, tensor in state.items()}


def to_arrays(state: Mapping[str, Tensor]) -> dict[str, np.ndarray]:
    """Convert a state to arrays, which share memory with tensors on the CPU."""
    return {name: tensor.detach().cpu().numpy() for name, tensor in state.items()}


def from_arrays(arrays: Mapping[str, np.ndarray]) -> State:
    """Convert arrays, which may be read-only, to a state by copying them."""
    return {name: torch.from_numpy(np.array(values)) for name, values in arrays.items()}
