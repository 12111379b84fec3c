"""Texts of a large collection on disk instead of in memory."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
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
        self._file = ArrayFile()
        sizes, piece = array("q"), bytearray()
        for text in texts:
            content = text.encode("utf-8", "surrogatepass")
            sizes.append(len(content))
            piece += content
            if len(piece) >= PIECE:
                self._file.append(np.frombuffer(bytes(piece), np.uint8))
                piece.clear()
        self._file.append(np.frombuffer(bytes(piece), np.uint8))
        self._ends = np.append(0, np.cumsum(np.frombuffer(sizes, np.int64), dtype=np.int64))

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


def kept_texts(texts: Iterable[str], most: int = CHARACTERS_IN_MEMORY) -> Sequence[str]:
    """A list of texts; if they have more than `most` characters, they are stored on disk."""
    first, size, stream = list[str](), 0, iter(texts)
    for text in stream:
        first.append(text)
        size += len(text)
        if size > most:
            return StoredTexts(chain(drained(first), stream))
    return first


def drained(texts: list[str]) -> Iterator[str]:
    """The texts of a list, which is emptied: none is in memory for longer than it is used."""
    texts.reverse()
    while texts:
        yield texts.pop()
