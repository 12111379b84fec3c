"""What the command ``data get`` does."""

from __future__ import annotations

import sys
from pathlib import Path

from treetop.data.download import ARCHIVE, get_dataset


def fetch_dataset(name: str, output: Path, address: str | None) -> None:
    """Download, unpack, and say where it is."""

    def show(have: int, expected: int) -> None:
        if sys.stderr.isatty():
            share = f"{100 * have / expected:.0f} %" if expected else f"{have >> 20:,} MB"
            sys.stderr.write(f"\r{name}: {share}  ")

    target = get_dataset(name, output, address or ARCHIVE, show)
    print(f"{target}: ready; next: treetop data inspect {target}")
