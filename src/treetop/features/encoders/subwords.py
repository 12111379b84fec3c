"""Text to the encoder's token ids, once: one ragged array, mapped from disk when it is large."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from treetop.features.words.tokens import check_text

TEXTS_A_BLOCK = 2048
SPOOL_BYTES = 1 << 30
# Characters a token takes at most in all but odd texts; those are read again in full.
CHARACTERS_A_TOKEN = 6


class Ragged(NamedTuple):
    """Rows of different lengths: row i is ids[ptr[i] : ptr[i + 1]]."""

    ids: np.ndarray  # int32
    ptr: np.ndarray  # int64

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each row."""
        return np.diff(self.ptr)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.ptr.size - 1


def token_ids_of(tokenizer: Any, texts: Iterable[str], max_length: int) -> Ragged:
    """The first `max_length` tokens of each text, special tokens among them."""
    lengths: list[np.ndarray] = []
    with tempfile.TemporaryFile() as spool:
        parts: list[np.ndarray] = []
        size = spilled = 0
        for ids, counts in blocks_of_ids(tokenizer, texts, max_length):
            lengths.append(counts)
            parts.append(ids)
            size += ids.nbytes
            if size > SPOOL_BYTES:
                for part in parts:
                    part.tofile(spool)
                spilled, size, parts = spilled + size, 0, []
        ptr = np.concatenate(
            [[0], *map(np.cumsum, [np.concatenate(lengths or [np.zeros(0, np.int64)])])]
        )
        if not spilled:
            return Ragged(np.concatenate([np.zeros(0, np.int32), *parts]), ptr.astype(np.int64))
        for part in parts:
            part.tofile(spool)
        spool.flush()
        return Ragged(np.memmap(spool, np.int32, "r", shape=(int(ptr[-1]),)), ptr.astype(np.int64))


def blocks_of_ids(
    tokenizer: Any, texts: Iterable[str], max_length: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Token ids of some thousand texts at a time, and how many each has."""
    remaining, done = iter(texts), 0
    while block := list(islice(remaining, TEXTS_A_BLOCK)):
        for number, text in enumerate(block):
            check_text(text, done + number)
        done += len(block)
        cut = [up_to_last_space(text, CHARACTERS_A_TOKEN * max_length) for text in block]
        rows = encode(tokenizer, cut, max_length)
        short = [
            number
            for number, (row, text) in enumerate(zip(rows, block, strict=True))
            if len(row) < max_length and len(cut[number]) < len(text)
        ]
        if short:
            again = encode(tokenizer, [block[number] for number in short], max_length)
            for number, row in zip(short, again, strict=True):
                rows[number] = row
        counts = np.array([len(row) for row in rows], np.int64)
        yield np.concatenate([np.array(row, np.int32) for row in rows]), counts


def encode(tokenizer: Any, texts: list[str], max_length: int) -> list[list[int]]:
    """Token ids; an empty text still has its special tokens, or one padding token."""
    nothing = [tokenizer.pad_token_id or 0]
    # Half a surrogate pair is no text that could be written down: replaced, as for the words.
    texts = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
    if getattr(tokenizer, "is_fast", False):
        # Straight to the library below, which here need not note where each token was in the text.
        backend = tokenizer.backend_tokenizer
        backend.enable_truncation(max_length)
        backend.no_padding()
        return [found.ids or nothing for found in backend.encode_batch_fast(texts)]
    rows = tokenizer(texts, truncation=True, max_length=max_length, verbose=False)["input_ids"]
    return [row or nothing for row in rows]


def up_to_last_space(text: str, characters: int) -> str:
    """The text up to the last space within `characters`: tokenizers never join words."""
    if len(text) <= characters:
        return text
    end = text.rfind(" ", 0, characters)
    return text[:end] if end > 0 else text
