"""Static word vectors as an encoder: a text is the mean of its words' vectors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from treetop.errors import TreetopError
from treetop.runtime import Runtime
from treetop.runtime.arrays import read_arrays, write_arrays

VECTORS_FILE = "vectors.safetensors"
WORDS_FILE = "words.txt"
WORD = re.compile(r"\w+|[^\w\s]")
FASTTEXT_MAGIC = 793_712_314


class WordVectors:
    """A vector a word. Reads word2vec (text and binary), GloVe and fastText (.vec and .bin) files."""

    def __init__(self, words: list[str], vectors: np.ndarray) -> None:
        self.words, self.vectors = words, np.ascontiguousarray(vectors, np.float32)
        self.numbers = {word: number for number, word in enumerate(words)}
        # A text is looked up as it stands, and in lower case where only that is known.
        self.lowercase = not any(word != word.lower() for word in words[:10_000])

    @property
    def width(self) -> int:
        """Columns of Φ_dnn."""
        return int(self.vectors.shape[1])

    def embed_texts(self, texts: Iterable[str], advance: Callable[[], Any] | None = None) -> np.ndarray:
        """Mean vector of each text's known words; zero if it has none."""
        rows = [self._mean(text) for text in texts]
        return np.stack(rows) if rows else np.zeros((0, self.width), np.float32)

    def _mean(self, text: str) -> np.ndarray:
        known = [number for word in self._words(text) if (number := self.numbers.get(word)) is not None]
        if not known:
            return np.zeros(self.width, np.float32)
        return np.asarray(self.vectors[known].mean(axis=0), np.float32)

    def _words(self, text: str) -> Iterator[str]:
        yield from WORD.findall(text.lower() if self.lowercase else text)

    def place(self, runtime: Runtime) -> None:
        """Nothing to do: word vectors are looked up on the CPU."""

    def save(self, folder: Path) -> None:
        """Write words and vectors."""
        folder.mkdir(exist_ok=True)
        write_arrays(folder / VECTORS_FILE, {"vectors": self.vectors})
        (folder / WORDS_FILE).write_text("".join(f"{word}\n" for word in self.words), "utf-8")

    @classmethod
    def load(cls, path: Path) -> WordVectors:
        """Vectors from a file in any of the formats, told apart by content, or from `save`."""
        if (path / VECTORS_FILE).is_file():
            words = (path / WORDS_FILE).read_bytes().decode("utf-8").split("\n")[:-1]
            return cls(words, read_arrays(path / VECTORS_FILE)["vectors"])
        with path.open("rb") as file:
            if int.from_bytes(file.read(4), "little") == FASTTEXT_MAGIC:
                from treetop.features.encoders.fasttext import read_fasttext

                return cls(*read_fasttext(path))
            file.seek(0)
            first = file.readline(1 << 20)
            if re.fullmatch(rb"\d+ \d+\s*", first):
                count, width = map(int, first.split())
                if is_binary(file, width):
                    return cls(*read_binary_vectors(path, file, len(first), count, width))
            else:
                file.seek(0)
            return cls(*read_text_vectors(path, file))


def is_binary(file: IO[bytes], width: int) -> bool:
    """Whether what follows a header is word2vec's binary form; the file stays where it was."""
    at = file.tell()
    line = file.readline(1 << 16)
    file.seek(at)
    try:
        return len(line.decode("utf-8").split()) != width + 1
    except UnicodeDecodeError:
        return True


def read_binary_vectors(
    path: Path, file: IO[bytes], start: int, count: int, width: int
) -> tuple[list[str], np.ndarray]:
    """word2vec's binary form: a word, a space, float32 values."""
    file.seek(start)
    words, vectors = [], np.empty((count, width), np.float32)
    for number in range(count):
        word = bytearray()
        while (letter := file.read(1)) not in (b" ", b""):
            word += letter
        values = file.read(4 * width)
        if len(values) != 4 * width:
            raise TreetopError(f"{path}: ends at word {number + 1} of {count}: the file is cut short")
        words.append(word.decode("utf-8", "replace").lstrip("\n"))
        vectors[number] = np.frombuffer(values, np.float32)
    return words, vectors


def read_text_vectors(path: Path, file: IO[bytes]) -> tuple[list[str], np.ndarray]:
    """A word and its values a line, separated by spaces: word2vec's text form, GloVe, fastText .vec."""
    words: list[str] = []
    rows: list[np.ndarray] = []
    for number, line in enumerate(file, start=1):
        if not line.strip():
            continue
        parts = line.decode("utf-8", "replace").rstrip().split(" ")
        # A word may contain spaces itself: from the second line on the number of values is known.
        first = len(parts) - rows[0].size if rows and len(parts) > rows[0].size else 1
        word, values = " ".join(parts[:first]), parts[first:]
        try:
            row = np.array(values, np.float32)
        except ValueError:
            raise TreetopError(f"{path}:{number}: not a word and its numbers") from None
        if (rows and row.size != rows[0].size) or row.size == 0:
            expected = rows[0].size if rows else "some"
            raise TreetopError(f"{path}:{number}: {row.size} numbers instead of {expected}")
        words.append(word)
        rows.append(row)
    if not rows:
        raise TreetopError(f"{path}: no word vectors in it")
    return words, np.stack(rows)
