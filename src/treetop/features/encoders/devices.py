"""The choice of device and precision, and ragged arrays on the device."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from treetop.errors import TreetopError
from treetop.features.encoders.subwords import Ragged

PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16}


def pick_device(name: str) -> torch.device:
    """The device of this name; ``auto`` is a GPU if there is one."""
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        if reason.startswith("Expected one of"):  # followed by all that torch has ever run on
            reason = "torch knows no such device"
        raise TreetopError(f"device {name!r} cannot be used ({reason}): try device=cpu") from None
    return device


def pick_precision(name: str, device: torch.device) -> torch.dtype:
    """The dtype in which the encoder computes.

    ``auto`` is bfloat16 on devices with instructions for it, where it is about twice as fast.
    """
    if name != "auto":
        return PRECISIONS[name]
    if device.type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float32
    return torch.bfloat16 if device.type == "cpu" and cpu_multiplies_bf16() else torch.float32


def cpu_multiplies_bf16() -> bool:
    """Whether the CPU has instructions for bfloat16 products."""
    checks = [getattr(torch.cpu, f"_is_{name}_supported", bool) for name in ("avx512_bf16", "amx_tile")]
    return any(is_supported() for is_supported in checks)


# What torch says if there is no memory: on a GPU; on a CPU under Linux and under Windows.
OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error means that the device, which may be the CPU, is out of memory."""
    message = str(error).lower()
    return isinstance(error, torch.OutOfMemoryError) or any(words in message for words in OUT_OF_MEMORY)


def memory_is_full() -> TreetopError:
    """Return the error to raise if even a single text does not fit."""
    return TreetopError("the device's memory is full: choose a smaller batch, max_length or encoder")


def is_device_failure(error: BaseException) -> bool:
    """Whether an error means that the GPU itself has failed."""
    return "CUDA error" in str(error) and not is_out_of_memory(error)


def in_fitting_parts(work: Callable[[slice], None], count: int, size: int) -> int:
    """Call `work` on slices of `count` items, of at most `size`; halve the size when out of memory.

    Returns the last size. A slice that ran out of memory is repeated from its beginning.
    """
    start = 0
    while start < count:
        try:
            work(slice(start, min(start + size, count)))
            start += size
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            if size == 1:
                raise memory_is_full() from None
            size = -(-size // 2)
            torch.cuda.empty_cache()
    return size


def to_device(array: np.ndarray, device: torch.device) -> Tensor:
    """An array as a tensor for reading only; it may be mapped from disk."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(np.asarray(array)).to(device)


class DeviceRagged:
    """Rows of token ids on the device, where batches are gathered and padded."""

    def __init__(self, tokens: Ragged, device: torch.device, padding: int) -> None:
        self.ids = to_device(tokens.ids, device)
        self.starts = to_device(tokens.ptr[:-1], device)
        self.lengths = to_device(tokens.lengths, device)
        self.padding = padding

    def padded(self, rows: Tensor, width: int, full: bool) -> tuple[Tensor, Tensor | None]:
        """Ids of some rows and their mask, int64, rows x width; no mask if every row is `full`."""
        columns = torch.arange(width, device=rows.device)
        positions = self.starts[rows][:, None] + columns
        if full:
            return self.ids[positions].long(), None
        inside = columns < self.lengths[rows][:, None]
        ids = self.ids[torch.where(inside, positions, 0)].long()
        return torch.where(inside, ids, self.padding), inside.long()
