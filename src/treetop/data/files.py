"""Open, read and write files: compression by file name, lines, and errors with line numbers."""

from __future__ import annotations

import gzip
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from treetop.data.dataset import SPLITS
from treetop.errors import TreetopError
from treetop.runtime.extras import require

ENDINGS = ("", ".xz", ".gz", ".zst")
BLOCK = 8 << 20


def zstandard() -> Any:
    """The package that reads and writes .zst files."""
    return require(".zst files", "data", "zstandard")


def open_bytes(path: Path, mode: str = "rb") -> IO[bytes]:
    """Open a file for reading or writing, compressed if its name ends in .xz, .gz or .zst."""
    try:
        if path.suffix == ".xz":
            return lzma.open(path, mode)  # type: ignore[return-value]
        if path.suffix == ".gz":
            # Without a time stamp in the header, the same data gives the same file.
            return gzip.GzipFile(path, mode, mtime=0)  # type: ignore[return-value]
        if path.suffix == ".zst":
            return zstandard().open(path, mode)  # type: ignore[no-any-return]
        return path.open(mode)  # type: ignore[return-value]
    except OSError as error:
        raise TreetopError(f"{path}: cannot be opened ({error.strerror})") from None


def blocks_of(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield blocks of whole lines, some megabytes each, with the number of their first line."""
    number, rest = 1, []
    with open_bytes(path) as file:
        while block := read_block(file, path, number):
            cut = block.rfind(b"\n") + 1
            if not cut:
                rest.append(block)
                continue
            lines = b"".join((*rest, block[:cut]))
            rest = [block[cut:]]
            yield number, lines
            number += lines.count(b"\n")
    if last := b"".join(rest):
        yield number, last


def read_block(file: IO[bytes], path: Path, number: int, size: int | None = None) -> bytes:
    """Read up to `size` bytes, by default a block; name the file if its compression is damaged."""
    try:
        return file.read(BLOCK if size is None else size)
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise TreetopError(f"{path}: damaged after line {number - 1} ({error})") from None
    except Exception as error:
        if type(error).__name__ != "ZstdError":
            raise
        raise TreetopError(f"{path}: damaged after line {number - 1} ({error})") from None


def lines_of(path: Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 file without line ends. Only LF and CRLF end a line."""
    for number, block in blocks_of(path):
        if b"\0" in block:
            line = number + block[: block.index(b"\0")].count(b"\n")
            raise TreetopError(f"{path}:{line}: contains a NUL byte: expected a text file in UTF-8")
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
    """Write lines to a file, compressed if its name says so."""
    with open_bytes(path, "wb") as file:
        for line in lines:
            file.write(line.encode("utf-8") + b"\n")


def find_file(folder: Path, *stems: str) -> Path | None:
    """The first of the named files that exists, plain or compressed."""
    for stem in stems:
        for ending in ENDINGS:
            path = folder / (stem + ending)
            if path.is_file():
                return path
    return None


def split_files(
    path: Path, stems: Callable[[str], Iterable[str]], fits: Callable[[Path], bool]
) -> dict[str, Path]:
    """Files by split: those of a folder, or a single file as ``train``; empty if none of them fits.

    `stems` gives the possible file names of a split. One file that fits is enough: whether a split is
    read must not depend on its first lines.
    """
    if path.is_file():
        return {"train": path} if fits(path) else {}
    found = {name: find_file(path, *stems(name)) for name in SPLITS}
    files = {name: file for name, file in found.items() if file is not None}
    return files if any(map(fits, files.values())) else {}


def plain_name(path: Path) -> str:
    """The file name in lower case, without the suffix of its compression."""
    return (path.stem if path.suffix in ENDINGS[1:] else path.name).lower()
