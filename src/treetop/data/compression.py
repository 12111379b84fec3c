"""Compressed files by their names. A file that was cut off is an error, never a shorter file."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from treetop.errors import TreetopError
from treetop.runtime.extras import require

ENDINGS = ("", ".xz", ".gz", ".bz2", ".zst")
# What damaged files raise, besides the ZstdError of an optional package.
DAMAGES = (OSError, EOFError, lzma.LZMAError, zlib.error)
FRAME, SKIPPABLE = 0xFD2FB528, 0x184D2A50
# Sizes of the parts of a frame's header, by bits of its first byte (RFC 8878, section 3.1.1.1).
DICTIONARY_BYTES, CONTENT_BYTES = (0, 1, 2, 4), (0, 2, 4, 8)
RUN_LENGTH, RESERVED = 1, 3

Decompressor = bz2.BZ2Decompressor | lzma.LZMADecompressor
DECOMPRESSORS: dict[str, Callable[[], Decompressor]] = {
    ".xz": lzma.LZMADecompressor,
    ".bz2": bz2.BZ2Decompressor,
}
BLOCK = 1 << 16


def zstandard() -> Any:
    """The package that reads and writes .zst files."""
    return require(".zst files", "data", "zstandard")


def open_bytes(path: Path, mode: str = "rb") -> IO[bytes]:
    """Open a file for reading or writing, compressed if its name ends in .xz, .gz, .bz2 or .zst."""
    try:
        if path.suffix in DECOMPRESSORS and mode == "rb":
            return io.BufferedReader(Streams(path.open("rb"), DECOMPRESSORS[path.suffix]))
        if path.suffix == ".xz":
            return lzma.open(path, mode)  # type: ignore[return-value]
        if path.suffix == ".gz":
            # Without a time stamp in the header, the same data gives the same file.
            return gzip.GzipFile(path, mode, mtime=0)  # type: ignore[return-value]
        if path.suffix == ".bz2":
            return bz2.open(path, mode)  # type: ignore[return-value,call-overload,no-any-return]
        if path.suffix == ".zst":
            package = zstandard()
            if mode == "rb":
                check_frames(path)
                source = package.ZstdDecompressor().stream_reader(
                    path.open("rb"), read_across_frames=True, closefd=True
                )
                return source  # type: ignore[no-any-return]
            return package.open(path, mode)  # type: ignore[no-any-return]
        return path.open(mode)  # type: ignore[return-value]
    except OSError as error:
        raise TreetopError(f"{path}: cannot be opened ({error.strerror})") from None


class Streams(io.RawIOBase):
    """The content of concatenated .xz or .bz2 streams, each of which must be whole.

    The readers of the standard library silently end at a stream that is damaged in its first bytes.
    """

    def __init__(self, file: IO[bytes], start: Callable[[], Decompressor]) -> None:
        self.file, self.start, self.current = file, start, start()

    def readable(self) -> bool:
        """Whether it can be read: always."""
        return True

    def close(self) -> None:
        """Close the file too."""
        self.file.close()
        super().close()

    def after_padding(self) -> bytes:
        """The next bytes after a stream that are not zeros, which .xz files may be padded with."""
        rest = self.current.unused_data.lstrip(b"\0")
        while not rest and (block := self.file.read(BLOCK)):
            rest = block.lstrip(b"\0")
        return rest

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer with the next bytes; 0 at the end of the last stream."""
        while True:
            if self.current.eof:
                rest = self.after_padding()
                if not rest:
                    return 0
                self.current = self.start()
            else:
                rest = self.file.read(BLOCK) if self.current.needs_input else b""
                if self.current.needs_input and not rest:
                    raise EOFError("ended before the end-of-stream marker")
            if content := self.current.decompress(rest, len(buffer)):
                buffer[: len(content)] = content
                return len(content)


def check_frames(path: Path) -> None:
    """Raise unless a .zst file consists of whole frames: its decompressor takes a cut for the end."""
    end = path.stat().st_size
    with path.open("rb") as file:
        at = 0
        while at < end:
            at = frame_end(file, at)
            if not 0 < at <= end:
                raise TreetopError(f"{path}: damaged after line 0 (cut off or changed): copy it again")


def frame_end(file: IO[bytes], start: int) -> int:
    """The offset after the frame that starts at `start`; -1 if it has no end."""
    file.seek(start)
    head = file.read(8)
    magic = int.from_bytes(head[:4], "little")
    if magic & ~15 == SKIPPABLE:
        return start + 8 + int.from_bytes(head[4:8], "little") if len(head) == 8 else -1
    if magic != FRAME or len(head) < 5:
        return -1
    flags = head[4]
    single_segment = flags >> 5 & 1
    content = CONTENT_BYTES[flags >> 6] or single_segment
    at = start + 5 + (not single_segment) + DICTIONARY_BYTES[flags & 3] + content
    while True:
        file.seek(at)
        block = file.read(3)
        if len(block) < 3:
            return -1
        header = int.from_bytes(block, "little")
        kind = header >> 1 & 3
        if kind == RESERVED:
            return -1
        at += 3 + (1 if kind == RUN_LENGTH else header >> 3)
        if header & 1:  # the last block; a checksum may follow
            return at + 4 * (flags >> 2 & 1)


def is_compressed(path: Path) -> bool:
    """Whether the name of a file says that it is compressed."""
    return path.suffix in ENDINGS[1:]


def compressed(file: IO[bytes], suffix: str) -> IO[bytes]:
    """A file that compresses what is written to it into another one, which stays open."""
    if suffix == ".zst":
        writer = zstandard().ZstdCompressor().stream_writer(file, closefd=False)
        return writer  # type: ignore[no-any-return]
    if suffix == ".gz":
        return gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0)  # type: ignore[return-value]
    return (bz2.BZ2File if suffix == ".bz2" else lzma.LZMAFile)(file, "wb")  # type: ignore[return-value]


def is_damage(error: Exception) -> bool:
    """Whether an error of a decompressor says that the file is damaged."""
    return isinstance(error, DAMAGES) or type(error).__name__ == "ZstdError"
