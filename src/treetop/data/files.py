"""Read and write text files: lines, and errors with line numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Protocol

from treetop.data.compression import ENDINGS, is_damage, open_bytes
from treetop.data.dataset import SPLITS
from treetop.data.encodings import UTF8, Recoded, marked_encoding, unmarked_encoding
from treetop.errors import TreetopError

BLOCK = 8 << 20
LOOKED_AT = 1 << 16  # bytes of a file that decide whether it is in UTF-16


class Source(Protocol):
    """What bytes are read from."""

    def read(self, size: int, /) -> bytes: ...  # noqa: D102


def encoding_of(path: Path, asked: str | None = None) -> str:
    """The encoding asked for, else the one detected."""
    if asked is not None:
        return asked
    with open_bytes(path) as file:
        marked = marked_encoding(read_block(file, path, 1, LOOKED_AT))
    return marked or unmarked_encoding(block for _, block in blocks_of(path))


def blocks_of(path: Path, encoding: str = UTF8) -> Iterator[tuple[int, bytes]]:
    """Yield blocks of whole lines in UTF-8, some megabytes each, with their first line numbers."""
    number, rest = 1, []
    with open_bytes(path) as file:
        source: Source = file if encoding == UTF8 else Recoded(file, encoding)
        while block := read_block(source, path, number):
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


def read_block(file: Source, path: Path, number: int, size: int = BLOCK) -> bytes:
    """Read up to `size` bytes, by default a block; name the file if it is damaged."""
    try:
        return file.read(size)
    except UnicodeError as error:
        raise TreetopError(
            f"{path}: after line {number - 1}: not in this encoding ({error}): give another --encoding"
        ) from None
    except Exception as error:
        if not is_damage(error):
            raise
        raise TreetopError(
            f"{path}: damaged after line {number - 1} ({error}): copy it again"
        ) from None


def lines_of(path: Path, encoding: str = UTF8) -> Iterator[str]:
    """Yield the lines of a file without line ends. Only LF and CRLF end a line."""
    for number, block in blocks_of(path, encoding):
        if b"\0" in block:
            line = number + block[: block.index(b"\0")].count(b"\n")
            raise TreetopError(f"{path}:{line}: contains a NUL byte: expected a text file in UTF-8")
        try:
            text = block.decode("utf-8")
        except UnicodeDecodeError as error:
            before = block[: error.start]
            line, column = number + before.count(b"\n"), error.start - before.rfind(b"\n")
            raise TreetopError(
                f"{path}:{line}: not UTF-8 at byte {column} of the line: convert the file to UTF-8, "
                "or give its --encoding"
            ) from None
        if number == 1:
            text = text.removeprefix("\ufeff")
        lines = text.removesuffix("\n").split("\n")
        if "\r" in text:
            lines = [line.removesuffix("\r") for line in lines]
        yield from lines


def first_lines(path: Path, count: int = 1, size: int = 1 << 20) -> list[str]:
    """The first lines of a file, the beginning of a very long one; none if it cannot be read."""
    try:
        with open_bytes(path) as file:
            start = read_block(file, path, 1, size)
    except TreetopError:  # the reader of the format will report the error
        return []
    whole, _, rest = start.rpartition(b"\n")
    if len(start) < size:
        whole = start
    elif not whole:
        whole = rest.rpartition(b" ")[0]
    text = whole.decode(marked_encoding(start) or UTF8, "ignore")
    return list(islice(text.removeprefix("\ufeff").split("\n"), count))


def first_line(path: Path) -> str:
    """The first line without surrounding whitespace."""
    return (first_lines(path) or [""])[0].strip()


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
