"""Texts of a large collection on disk instead of in memory."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import overload

import numpy as np

from treetop.runtime.spool import ArrayFile

# Collections of up to this many characters stay in memory.
CHARACTERS_IN_MEMORY = 1 << 28
# Bytes that are written, and read by an iteration, at a time.
PIECE = 4 << 20


class StoredTexts(Sequence[str]):
    """Texts in a temporary file, of which only those in use are in memory."""

    def __init__(self, texts: Iterable[str]) -> None:
        writer = TextWriter()
        for text in texts:
            writer.append(text)
        self._file, self._ends = writer.finished()

    @classmethod
    def written_by(cls, writer: TextWriter) -> StoredTexts:
        """The texts of a writer, which writes no more."""
        stored = cls(())
        stored._file, stored._ends = writer.finished()
        return stored

    def __len__(self) -> int:
        return self._ends.size - 1

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return [self[number] for number in range(*place.indices(len(self)))]
        number = range(len(self))[place]
        return self._between(number, number + 1)[0]

    def __iter__(self) -> Iterator[str]:
        first = 0
        while first < len(self):
            last = int(np.searchsorted(self._ends, self._ends[first] + PIECE, "right")) - 1
            last = max(last, first + 1)
            yield from self._between(first, last)
            first = last

    def _between(self, first: int, last: int) -> list[str]:
        """The texts from `first` to before `last`."""
        ends = self._ends[first : last + 1]
        content = self._file.read(int(ends[0]), int(ends[-1] - ends[0]), np.uint8).tobytes()
        places = (ends - ends[0]).tolist()
        return [
            content[start:end].decode("utf-8", "surrogatepass")
            for start, end in zip(places[:-1], places[1:], strict=True)
        ]


class TextWriter:
    """Writes texts to a temporary file, one by one."""

    def __init__(self) -> None:
        self._file, self._sizes, self._piece = ArrayFile(), array("q"), bytearray()

    def __len__(self) -> int:
        return len(self._sizes)

    def append(self, text: str) -> None:
        """Add a text."""
        content = text.encode("utf-8", "surrogatepass")
        self._sizes.append(len(content))
        self._piece += content
        if len(self._piece) >= PIECE:
            self._write()

    def finished(self) -> tuple[ArrayFile, np.ndarray]:
        """The file, and where each text ends in it: int64, with a 0 before the first."""
        self._write()
        return self._file, np.append(0, np.cumsum(np.frombuffer(self._sizes, np.int64), dtype=np.int64))

    def _write(self) -> None:
        self._file.append(np.frombuffer(bytes(self._piece), np.uint8))
        self._piece.clear()


def stay_in_memory(characters: int, most: int | None = None) -> bool:
    """Whether texts of so many characters stay in memory; `most` replaces the usual limit."""
    return characters <= (CHARACTERS_IN_MEMORY if most is None else most)


class TextCollector:
    """Collects texts in a list; as soon as they have more than `most` characters, on disk."""

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self._texts, self._characters = list[str](), 0
        self._writer: TextWriter | None = None

    def __len__(self) -> int:
        return len(self._texts if self._writer is None else self._writer)

    def append(self, text: str) -> None:
        """Add a text."""
        if self._writer is not None:
            self._writer.append(text)
            return
        self._texts.append(text)
        self._characters += len(text)
        if not stay_in_memory(self._characters, self._most):
            self._writer = TextWriter()
            for earlier in drained(self._texts):
                self._writer.append(earlier)

    def collected(self) -> Sequence[str]:
        """All texts."""
        return self._texts if self._writer is None else StoredTexts.written_by(self._writer)


def kept_texts(texts: Iterable[str], most: int | None = None) -> Sequence[str]:
    """A list of texts; if they have more than `most` characters, they are stored on disk."""
    collector = TextCollector(most)
    for text in texts:
        collector.append(text)
    return collector.collected()


def drained(texts: list[str]) -> Iterator[str]:
    """The texts of a list, which is emptied: none is in memory for longer than it is used."""
    texts.reverse()
    while texts:
        yield texts.pop()
