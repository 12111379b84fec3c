"""Labels in the cells of a column: lists, lists written as text, objects, or strings to be divided."""

from __future__ import annotations

import ast
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, islice

from treetop.errors import TreetopError
from treetop.labels.separators import label_reading, pieces_of

# Keys of an object that is a label: what identifies it, and what it is called.
ID_KEYS = ("uri", "@id", "id", "url", "notation", "code")
TITLE_KEYS = ("label", "prefLabel", "name", "title", "text")
QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")
URIS = re.compile(r"\s*(<[^<>\s]+>|https?://\S+)(\s+(<[^<>\s]+>|https?://\S+))*\s*")
SPACES = " "  # the separator of URIs: any whitespace
# If at least this share of many labels occurs once only, they were probably not divided.
UNIQUE_SHARE, MANY = 0.9, 20


@dataclass
class CellReader:
    """Reads the cells of all splits alike: the separator is chosen once, by evidence from all of them.

    `titles` collects the names of labels that are identified by a URI, `padded` counts names that had
    surrounding space.
    """

    separator: str | None  # None or "": each string is one label
    titles: dict[str, str] = field(default_factory=dict)
    padded: int = 0
    divided: bool = False  # whether any string was divided

    def labels(self, cell: object) -> list[str]:
        """Labels of a cell, each once."""
        if isinstance(cell, str):
            parts = self.divide(cell)
        else:
            parts = [item if isinstance(item, str) else self.name_of(item) for item in items_of(cell)]
            self.padded += sum(bool(part.strip()) and part != part.strip() for part in parts)
        names = dict.fromkeys(name for part in parts if (name := part.strip()))
        return list(map(sys.intern, names))  # a label of many documents is in memory once

    def divide(self, text: str) -> list[str]:
        """Divide a string at the separator."""
        parts = text.split() if self.separator == SPACES else [text]
        if self.separator == SPACES:
            parts = [unbracketed(part) for part in parts]
        elif self.separator:
            parts = pieces_of(text, self.separator)
        self.divided |= len(parts) > 1
        return parts

    def name_of(self, item: object) -> str:
        """The name of a label that is a number or an object with an identifier."""
        if not isinstance(item, Mapping):
            return plain_name_of(item)
        title = first_of(item, TITLE_KEYS)
        name = first_of(item, ID_KEYS) or title
        if not name:
            raise TreetopError(
                f"labels are objects with the keys {', '.join(map(str, islice(item, 5)))}: they must "
                f"have a key such as {ID_KEYS[0]} or {TITLE_KEYS[0]}"
            )
        if title and title != name:
            self.titles.setdefault(name, title)
        return name


def first_of(item: Mapping[object, object], keys: tuple[str, ...]) -> str:
    """The value of the first of the keys that an object has, as a string."""
    return next((plain_name_of(item[key]) for key in keys if not is_missing(item.get(key))), "")


def unbracketed(text: str) -> str:
    """A URI without the angle brackets around it."""
    text = text.strip()
    return text[1:-1] if text.startswith("<") and text.endswith(">") else text


def items_of(cell: object) -> list[object]:
    """What a parsed cell holds, without missing values."""
    items = cell if isinstance(cell, list) else [cell]
    return [item for item in items if not is_missing(item)]


def parsed_cell(cell: object) -> object:
    """A cell with a list written as text parsed; other containers as a list."""
    if isinstance(cell, str):
        return parsed_list(cell) if is_bracketed(cell) else cell
    if is_missing(cell) or isinstance(cell, list | Mapping):
        return cell
    return list(cell) if isinstance(cell, tuple | set | frozenset) else cell


def is_bracketed(cell: str) -> bool:
    """Whether a string may be a list, tuple or set written as text."""
    cell = cell.strip()
    return len(cell) > 1 and cell[0] + cell[-1] in ("[]", "()", "{}")


def parsed_list(cell: str) -> list[object] | str:
    """The list that a string holds in the notation of JSON, Python or numpy; else the string itself."""
    outside = QUOTED.sub("Q", cell)
    if "," not in outside and re.search(r"Q\s+Q", outside):  # numpy writes ['a' 'b']
        cell = f"[{', '.join(QUOTED.findall(cell))}]"
    for parse in (json.loads, ast.literal_eval):
        with suppress(ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            value = parse(cell.strip())
            if isinstance(value, list):
                return value
            if isinstance(value, tuple | set):
                return list(value) if isinstance(value, tuple) else sorted(value, key=str)
    return cell


def is_missing(value: object) -> bool:
    """Whether a cell is empty: None, NaN or pandas.NA."""
    return (
        value is None
        or type(value).__name__ in ("NAType", "NaTType")
        or (isinstance(value, float) and value != value)
    )


def plain_name_of(part: object) -> str:
    """A label as a string; integers arrive as floats if their column has missing values."""
    if isinstance(part, float) and part.is_integer():
        part = int(part)
    if isinstance(part, list | tuple | set | Mapping):
        raise TreetopError(
            f"the label {str(part)[:60]!r} is a list or an object: write one list of labels per "
            "document"
        )
    return str(part)


def detected_separator(strings: list[str], column: str) -> tuple[str | None, list[str]]:
    """The separator of labels in strings, by evidence, and warnings if there are doubts."""
    filled = [text for text in strings if text.strip()]
    if filled and all(map(URIS.fullmatch, filled)):
        separated = label_reading(filled).separator
        if separated is None or any(len(text.split()) > 1 for text in filled):
            return SPACES, []
    reading = label_reading(filled)
    if not reading.ambiguous:
        return reading.separator, []
    separator = reading.plausible[0]
    example = next(text for text in filled if separator in text)
    option = "tab" if separator == "\t" else f"'{separator}'"
    return None, [
        f"{column!r} may hold one label or several, as in {example[:60]!r}: each field is read as one "
        f"label; divide it with --label-separator {option}, or confirm with --label-separator none"
    ]


def doubts_about(lines: Iterable[list[str]], column: str, given: bool) -> list[str]:
    """A warning if nearly every label occurs only once, unless the separator was `given`."""
    counts = Counter(chain.from_iterable(lines))
    once = sum(count == 1 for count in counts.values())
    if given or len(counts) < MANY or once < UNIQUE_SHARE * len(counts):
        return []
    return [
        f"{once:,} of {len(counts):,} labels in {column!r} occur only once: if a field holds several "
        "labels, give --label-separator; if another column holds the labels, --labels-column"
    ]
