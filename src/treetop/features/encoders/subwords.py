"""Token ids of texts as one ragged array, which is mapped from disk when it is large."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from treetop.errors import TreetopError
from treetop.features.words.tokens import check_text

TEXTS_PER_BLOCK = 2048
SPOOL_BYTES = 1 << 30
# Texts are cut to this many characters per token before they are tokenized. Where a token takes more,
# the text is tokenized again in full.
CHARACTERS_PER_TOKEN = 6


class Ragged(NamedTuple):
    """Rows of different lengths: row i is ids[ptr[i] : ptr[i + 1]]."""

    ids: np.ndarray  # int32
    ptr: np.ndarray  # int64

    @property
    def lengths(self) -> np.ndarray:
        """Number of tokens of each row, int64."""
        return np.diff(self.ptr)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.ptr.size - 1

    def of_rows(self, rows: np.ndarray) -> Ragged:
        """Copy some rows, in the order of `rows`."""
        lengths = self.lengths[rows]
        ptr = np.append(0, np.cumsum(lengths))
        places = np.repeat(self.ptr[rows] - ptr[:-1], lengths) + np.arange(ptr[-1])
        return Ragged(self.ids[places], ptr)


def token_ids_of(tokenizer: Any, texts: Iterable[str], max_length: int) -> Ragged:
    """The first `max_length` tokens of each text, including special tokens."""
    lengths: list[np.ndarray] = []
    with ExitStack() as stack:
        spool: IO[bytes] | None = None
        parts: list[np.ndarray] = []
        size = 0
        for ids, counts in blocks_of_ids(tokenizer, texts, max_length):
            lengths.append(counts)
            parts.append(ids)
            size += ids.nbytes
            if size > SPOOL_BYTES:
                spool = spool or stack.enter_context(tempfile.TemporaryFile())
                for part in parts:
                    spool.write(part.data)
                size, parts = 0, []
        ptr = np.cumsum(np.concatenate([[0], *lengths]), dtype=np.int64)
        if spool is None:
            return Ragged(np.concatenate([np.zeros(0, np.int32), *parts]), ptr)
        for part in parts:
            spool.write(part.data)
        spool.flush()
        return Ragged(np.memmap(spool, np.int32, "r", shape=(int(ptr[-1]),)), ptr)


def blocks_of_ids(
    tokenizer: Any, texts: Iterable[str], max_length: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Token ids (int32) of some thousand texts at a time, and how many each text has (int64)."""
    remaining, done = iter(texts), 0
    while block := list(islice(remaining, TEXTS_PER_BLOCK)):
        for number, text in enumerate(block):
            check_text(text, done + number)
        done += len(block)
        cut = [up_to_last_space(text, CHARACTERS_PER_TOKEN * max_length) for text in block]
        rows = encode(tokenizer, cut, max_length)
        cut_too_short = [
            number
            for number, (row, text) in enumerate(zip(rows, block, strict=True))
            if len(row) < max_length and len(cut[number]) < len(text)
        ]
        if cut_too_short:
            in_full = encode(tokenizer, [block[number] for number in cut_too_short], max_length)
            for number, row in zip(cut_too_short, in_full, strict=True):
                rows[number] = row
        counts = np.array([len(row) for row in rows], np.int64)
        yield np.concatenate([np.array(row, np.int32) for row in rows]), counts


def encode(tokenizer: Any, texts: list[str], max_length: int) -> list[list[int]]:
    """Token ids of each text; an empty one has its special tokens, or else one padding token."""
    nothing = [tokenizer.pad_token_id or 0]
    # A lone surrogate cannot be encoded as UTF-8. It is replaced, as in TF-IDF features.
    texts = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
    if getattr(tokenizer, "is_fast", False):
        set_truncation(tokenizer, max_length)
        # Calls the tokenizers library directly, which saves recording each token's place in the text.
        rows = tokenizer.backend_tokenizer.encode_batch_fast(texts)
        return [encoding.ids or nothing for encoding in rows]
    rows = tokenizer(texts, truncation=True, max_length=max_length, verbose=False)["input_ids"]
    return [row or nothing for row in rows]


def check_template(tokenizer: Any, folder: Path) -> None:
    """Raise if the template of the special tokens names one that it does not define.

    The tokenizers library takes that for granted, and would panic at the first text.
    """
    processor = getattr(getattr(tokenizer, "backend_tokenizer", None), "post_processor", None)
    if processor is None:
        return
    state = json.loads(processor.__getstate__())
    for part in state.get("processors", [state]):
        named = {
            piece["SpecialToken"]["id"] for piece in part.get("single", ()) if "SpecialToken" in piece
        }
        if missing := sorted(named - set(part.get("special_tokens", ()))):
            raise TreetopError(
                f"{folder / 'tokenizer.json'}: its template names the special token {missing[0]!r}, "
                "which it does not define: copy the folder again"
            )


def set_truncation(tokenizer: Any, max_length: int) -> None:
    """Make a tokenizer truncate texts to `max_length` tokens and pad none.

    This is part of what the tokenizers library saves.
    """
    if getattr(tokenizer, "is_fast", False):
        tokenizer.backend_tokenizer.enable_truncation(max_length)
        tokenizer.backend_tokenizer.no_padding()


def up_to_last_space(text: str, characters: int) -> str:
    """The beginning of a text, up to the last space within `characters`."""
    if len(text) <= characters:
        return text
    end = text.rfind(" ", 0, characters)
    return text[:end] if end > 0 else text


def by_length(lengths: np.ndarray, tokens: int, unpadded: bool = False) -> Iterator[np.ndarray]:
    """Batches of row numbers, longest rows first, of at most `tokens` tokens including padding.

    With `unpadded`, all rows of a batch have the same length.
    """
    order = np.argsort(-lengths, kind="stable")
    descending = -lengths[order]
    start = 0
    while start < order.size:
        end = start + max(1, tokens // int(lengths[order[start]]))
        if unpadded:
            end = min(end, int(np.searchsorted(descending, descending[start], "right")))
        yield order[start:end]
        start = end
