"""Which encoding a text file is in: UTF-8, UTF-16, or cp1252, the Windows code page of the West."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable
from typing import IO

UTF8 = "utf-8"
# Letters that stand next to other letters, and punctuation, as cp1252 text has them.
LETTER = "[À-ÖØ-öø-þŠšŽžŒœß]"
LIKELY = re.compile(f"(?<=[A-Za-zÀ-þ]){LETTER}|{LETTER}(?=[A-Za-zÀ-þ])|[‘’“”„–—…•€£§©®°«»·\xa0]")
# Words of such letters alone speak for another alphabet, such as Cyrillic in cp1251.
FOREIGN = re.compile(f"{LETTER}{{3,}}")
LIKELY_SHARE = 0.95
# A text in cp1252 hardly ever contains bytes that are also a character of UTF-8.
ALSO_UTF8 = 0.05
# UTF-16 without a mark: nearly every second byte is 0 if the text is mostly ASCII.
FEWEST_ZEROS, ZEROS_SHARE = 8, 0.5


def marked_encoding(start: bytes) -> str | None:
    """UTF-16 if the first bytes of a file are in it, by its mark or by zeros; None otherwise."""
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    even, odd = start[0::2], start[1::2]
    for zeros, others, name in ((odd, even, "utf-16-le"), (even, odd, "utf-16-be")):
        count = zeros.count(0)
        if count >= FEWEST_ZEROS and count >= ZEROS_SHARE * len(zeros) and others.count(0) * 20 < count:
            return name
    return None


def unmarked_encoding(blocks: Iterable[bytes]) -> str:
    """UTF-8, or cp1252 if the first block that is not ASCII is likely to be in it."""
    for block in blocks:
        if block.isascii():
            continue
        try:
            block.decode(UTF8)
        except UnicodeDecodeError:
            return "cp1252" if is_likely_cp1252(block) else UTF8
        return UTF8
    return UTF8


def is_likely_cp1252(block: bytes) -> bool:
    """Whether bytes that are not UTF-8 read well in cp1252."""
    try:
        text = block.decode("cp1252")
    except UnicodeDecodeError:
        return False
    special = len(text) - len(block.decode("ascii", "ignore"))
    as_utf8 = sum(not character.isascii() for character in block.decode(UTF8, "ignore"))
    foreign = sum(map(len, FOREIGN.findall(text)))
    likely = len(LIKELY.findall(text)) - foreign
    return likely >= LIKELY_SHARE * special and as_utf8 <= ALSO_UTF8 * special


def other_than_utf8(encodings: Iterable[str]) -> str | None:
    """The first encoding that is not UTF-8; None if all are."""
    return next((name for name in encodings if name != UTF8), None)


class Recoded:
    """A binary file in another encoding, read as UTF-8."""

    def __init__(self, file: IO[bytes], encoding: str) -> None:
        self.file = file
        self.decoder = codecs.getincrementaldecoder(encoding)()
        self.ended = False

    def read(self, size: int) -> bytes:
        """Up to `size` bytes of the file in UTF-8; empty at its end."""
        while not self.ended:
            block = self.file.read(size)
            self.ended = not block
            if text := self.decoder.decode(block, final=self.ended):
                return text.encode(UTF8)
        return b""
