"""Converts the weights of a saved encoder to float16."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from treetop.runtime.arrays import read_arrays, write_arrays


def halve(folder: Path) -> None:
    """Convert the float32 arrays in the safetensors files of a folder to float16, in place."""
    for path in folder.glob("*.safetensors"):
        arrays = read_arrays(path)
        if any(values.dtype == np.float32 for values in arrays.values()):
            halved = {
                name: values.astype(np.float16) if values.dtype == np.float32 else values.copy()
                for name, values in arrays.items()
            }
            write_arrays(path, halved, {"format": "pt"})
