"""Static word vectors as an encoder: the vector of a text is the mean of its words' vectors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO

import numpy as np

from treetop.errors import TreetopError
from treetop.runtime import Runtime
from treetop.runtime.arrays import read_arrays, write_arrays
from treetop.runtime.checking import Column, check_arrays, reading

VECTORS_FILE = "vectors.safetensors"
WORDS_FILE = "words.txt"
WORD = re.compile(r"\w+|[^\w\s]")
FASTTEXT_MAGIC = 793_712_314
SAVED = {"vectors": Column("float32 float16", ("words", "width"))}


class WordVectors:
    """One vector per word, from word2vec (text and binary), GloVe or fastText (.vec and .bin) files."""

    def __init__(self, words: list[str], vectors: np.ndarray) -> None:
        self.words, self.vectors = words, np.ascontiguousarray(vectors, np.float32)
        self.numbers = {word: number for number, word in enumerate(words)}
        # Texts are lowercased if the vocabulary is.
        self.lowercase = not any(word != word.lower() for word in words[:10_000])

    @property
    def width(self) -> int:
        """Columns of Φ_dnn."""
        return int(self.vectors.shape[1])

    def embed_texts(
        self, texts: Iterable[str], advance: Callable[[], object] | None = None
    ) -> np.ndarray:
        """Mean vector of the known words of each text, or zeros: float32, texts x width."""
        vectors = [self._mean(text) for text in texts]
        return np.stack(vectors) if vectors else np.zeros((0, self.width), np.float32)

    def _mean(self, text: str) -> np.ndarray:
        words = WORD.findall(text.lower() if self.lowercase else text)
        known = [self.numbers[word] for word in words if word in self.numbers]
        if not known:
            return np.zeros(self.width, np.float32)
        return np.asarray(self.vectors[known].mean(axis=0), np.float32)

    def place(self, runtime: Runtime) -> None:
        """Do nothing: word vectors are looked up on the CPU."""

    def save(self, folder: Path) -> None:
        """Write words and vectors to a folder."""
        folder.mkdir(exist_ok=True)
        write_arrays(folder / VECTORS_FILE, {"vectors": self.vectors})
        (folder / WORDS_FILE).write_text("".join(f"{word}\n" for word in self.words), "utf-8")

    @classmethod
    def load(cls, path: Path) -> WordVectors:
        """Read a file in any of the formats, detected by its content, or a folder written by `save`."""
        if (path / VECTORS_FILE).is_file():
            return cls(*read_saved(path))
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


def read_saved(folder: Path) -> tuple[list[str], np.ndarray]:
    """Words and vectors of a folder written by `save`, which may be from a stranger."""
    try:
        words = (folder / WORDS_FILE).read_bytes().decode("utf-8").split("\n")[:-1]
    except (OSError, UnicodeDecodeError):
        raise TreetopError(
            f"{folder / WORDS_FILE}: missing or not UTF-8: copy the folder again"
        ) from None
    with reading(folder / VECTORS_FILE):
        arrays = check_arrays(read_arrays(folder / VECTORS_FILE), SAVED, {"words": len(words)})
    return words, arrays["vectors"]


def is_binary(file: IO[bytes], width: int) -> bool:
    """Whether the lines after a header are in word2vec's binary format. The position is restored."""
    position = file.tell()
    line = file.readline(1 << 16)
    file.seek(position)
    try:
        return len(line.decode("utf-8").split()) != width + 1
    except UnicodeDecodeError:
        return True


def read_binary_vectors(
    path: Path, file: IO[bytes], start: int, count: int, width: int
) -> tuple[list[str], np.ndarray]:
    """Words and vectors in word2vec's binary format: a word, a space, float32 values."""
    file.seek(start)
    words, vectors = [], np.empty((count, width), np.float32)
    for number in range(count):
        word = bytearray()
        while (byte := file.read(1)) not in (b" ", b""):
            word += byte
        values = file.read(4 * width)
        if len(values) != 4 * width:
            raise TreetopError(f"{path}: the file is truncated, at word {number + 1} of {count}")
        words.append(word.decode("utf-8", "replace").lstrip("\n"))
        vectors[number] = np.frombuffer(values, np.float32)
    return words, vectors


def read_text_vectors(path: Path, file: IO[bytes]) -> tuple[list[str], np.ndarray]:
    """Words and vectors in text: per line a word and its values (word2vec, GloVe, fastText .vec)."""
    words: list[str] = []
    rows: list[np.ndarray] = []
    for number, line in enumerate(file, start=1):
        if not line.strip():
            continue
        parts = line.decode("utf-8", "replace").rstrip().split(" ")
        # A word may contain spaces: from the second line on, the number of values is known.
        first = len(parts) - rows[0].size if rows and len(parts) > rows[0].size else 1
        word, values = " ".join(parts[:first]), parts[first:]
        try:
            row = np.array(values, np.float32)
        except ValueError:
            raise TreetopError(f"{path}:{number}: not a word followed by numbers") from None
        if (rows and row.size != rows[0].size) or row.size == 0:
            expected = rows[0].size if rows else "at least one"
            raise TreetopError(f"{path}:{number}: {row.size} numbers instead of {expected}")
        words.append(word)
        rows.append(row)
    if not rows:
        raise TreetopError(f"{path}: contains no word vectors")
    return words, np.stack(rows)
