"""Weights of a saved encoder in 16 bits."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from treetop.runtime.arrays import read_arrays, write_arrays


def halve(folder: Path) -> None:
    """Rewrite every float32 array of a folder's safetensors files as float16; all else stays."""
    for path in folder.glob("*.safetensors"):
        arrays = read_arrays(path)
        if any(values.dtype == np.float32 for values in arrays.values()):
            halved = {
                name: values.astype(np.float16) if values.dtype == np.float32 else values.copy()
                for name, values in arrays.items()
            }
            write_arrays(path, halved, {"format": "pt"})
