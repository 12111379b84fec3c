"""Opening files: compression by the name, lines with good errors."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from treetop.errors import TreetopError

ENDINGS = ("", ".xz", ".gz")
LONGEST_LINE = 1 << 30


def open_bytes(path: Path) -> IO[bytes]:
    """A file for reading, decompressed if its name ends in .xz or .gz."""
    try:
        if path.suffix == ".xz":
            return lzma.open(path)
        if path.suffix == ".gz":
            return gzip.open(path)  # type: ignore[return-value]
        return path.open("rb")
    except OSError as error:
        raise TreetopError(f"{path}: cannot be opened ({error.strerror})") from None


def lines_of(path: Path) -> Iterator[str]:
    """Lines of a UTF-8 file without their ends. Only a line feed ends a line."""
    with open_bytes(path) as file:
        for number, line in numbered(file, path):
            if b"\0" in line:
                raise TreetopError(f"{path}:{number}: contains a NUL byte: is it a text file?")
            try:
                yield line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")
            except UnicodeDecodeError as error:
                raise TreetopError(
                    f"{path}:{number}: not UTF-8 at byte {error.start + 1} of the line: "
                    "convert the file to UTF-8"
                ) from None


def numbered(file: IO[bytes], path: Path) -> Iterator[tuple[int, bytes]]:
    """Lines with their numbers; a damaged archive is an error that names the file."""
    number = 0
    try:
        while line := file.readline(LONGEST_LINE):
            number += 1
            yield number, line
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise TreetopError(f"{path}: damaged after line {number} ({error})") from None


def find(folder: Path, *stems: str) -> Path | None:
    """The first existing file of these names, plain or compressed."""
    for stem in stems:
        for ending in ENDINGS:
            path = folder / (stem + ending)
            if path.is_file():
                return path
    return None


def plain_name(path: Path) -> str:
    """The file's name without the ending of its compression."""
    return path.name.removesuffix(".xz").removesuffix(".gz")
