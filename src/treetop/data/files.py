"""Opening and writing files: compression by the name, lines with good errors."""

from __future__ import annotations

import gzip
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from treetop.errors import TreetopError
from treetop.runtime.extras import require

ENDINGS = ("", ".xz", ".gz", ".zst")
BLOCK = 8 << 20


def zstandard() -> Any:
    """The package that reads .zst files."""
    return require(".zst files", "data", "zstandard")


def open_bytes(path: Path, mode: str = "rb") -> IO[bytes]:
    """A file for reading or writing; .xz, .gz and .zst are handled on the way."""
    try:
        if path.suffix == ".xz":
            return lzma.open(path, mode)  # type: ignore[return-value]
        if path.suffix == ".gz":
            # No time in the header: the same data gives the same file.
            return gzip.GzipFile(path, mode, mtime=0)  # type: ignore[return-value]
        if path.suffix == ".zst":
            return zstandard().open(path, mode)  # type: ignore[no-any-return]
        return path.open(mode)  # type: ignore[return-value]
    except OSError as error:
        raise TreetopError(f"{path}: cannot be opened ({error.strerror})") from None


def blocks_of(path: Path) -> Iterator[tuple[int, bytes]]:
    """Whole lines of a file, some megabytes at a time, with the number of the first line."""
    number, rest = 1, []
    with open_bytes(path) as file:
        while block := read_block(file, path, number):
            cut = block.rfind(b"\n") + 1
            if not cut:
                rest.append(block)
                continue
            made = b"".join((*rest, block[:cut]))
            rest = [block[cut:]]
            yield number, made
            number += made.count(b"\n")
    if last := b"".join(rest):
        yield number, last


def read_block(file: IO[bytes], path: Path, number: int, size: int | None = None) -> bytes:
    """The next `size` bytes, a block if None; a damaged archive is an error that names the file."""
    try:
        return file.read(BLOCK if size is None else size)
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise TreetopError(f"{path}: damaged after line {number - 1} ({error})") from None
    except Exception as error:
        if type(error).__name__ != "ZstdError":
            raise
        raise TreetopError(f"{path}: damaged after line {number - 1} ({error})") from None


def lines_of(path: Path) -> Iterator[str]:
    """Lines of a UTF-8 file without their ends. Only a line feed ends a line."""
    for number, block in blocks_of(path):
        if b"\0" in block:
            line = number + block[: block.index(b"\0")].count(b"\n")
            raise TreetopError(f"{path}:{line}: contains a NUL byte: is it a text file?")
        try:
            text = block.decode("utf-8")
        except UnicodeDecodeError as error:
            before = block[: error.start]
            line, column = number + before.count(b"\n"), error.start - before.rfind(b"\n")
            raise TreetopError(
                f"{path}:{line}: not UTF-8 at byte {column} of the line: convert the file to UTF-8"
            ) from None
        if number == 1:
            text = text.removeprefix("\ufeff")
        lines = text.removesuffix("\n").split("\n")
        if "\r" in text:
            lines = [line.removesuffix("\r") for line in lines]
        yield from lines


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines, compressed by the name."""
    with open_bytes(path, "wb") as file:
        for line in lines:
            file.write(line.encode("utf-8") + b"\n")


def find_file(folder: Path, *stems: str) -> Path | None:
    """The first existing file of these names, plain or compressed."""
    for stem in stems:
        for ending in ENDINGS:
            path = folder / (stem + ending)
            if path.is_file():
                return path
    return None


def if_any_fits(files: dict[str, Path | None], fits: Callable[[Path], bool]) -> dict[str, Path]:
    """The files of all splits if one of them fits: a split is never left out for how it begins."""
    there = {name: file for name, file in files.items() if file is not None}
    return there if any(fits(file) for file in there.values()) else {}


def plain_name(path: Path) -> str:
    """The file's name in small letters, without the ending of its compression."""
    return (path.stem if path.suffix in ENDINGS[1:] else path.name).lower()
