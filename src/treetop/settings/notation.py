"""Parsers for the notation of setting values: n-grams, trees, budgets, assignments."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from treetop.errors import TreetopError


class Ngrams(NamedTuple):
    """One item of the `ngrams` notation, such as ``word:1-2@300``."""

    unit: str  # word or char
    lengths: tuple[int, int]  # minimum and maximum
    first: int | None  # number of characters to read from the beginning; None: all


class LevelSizes(NamedTuple):
    """Written level sizes of a tree; `with_labels`: whether a final L stands for the labels."""

    sizes: tuple[int, ...]
    with_labels: bool


def parse_views(spec: str) -> list[list[Ngrams]]:
    """Parse ``word:1-2+word:1@300|word:1-2`` into the n-grams of each tree; ``auto`` gives none."""
    return [] if spec == "auto" else [parse_ngrams(view) for view in spec.split("|")]


def parse_ngrams(spec: str) -> list[Ngrams]:
    """Parse ``word:1-2+char:3@400`` into [("word", (1, 2), None), ("char", (3, 3), 400)]."""
    items = []
    for part in spec.replace(" ", "").split("+"):
        match = re.fullmatch(r"(word|char):([1-9]\d?)(?:-([1-9]\d?))?(?:@([1-9]\d*))?", part)
        if not match or int(match[3] or match[2]) < int(match[2]):
            raise TreetopError(
                f"ngrams {spec!r} is not understood: write word:1-2, char:3, "
                "word:1@400 for the first 400 characters, several joined by +, "
                "and | before the n-grams of the next tree"
            )
        first = int(match[4]) if match[4] else None
        items.append(Ngrams(match[1], (int(match[2]), int(match[3] or match[2])), first))
    return items


def parse_sizes(name: str, spec: str, example: str) -> LevelSizes:
    """Parse ``16-256-L`` into ((16, 256), True); ``auto`` and ``flat`` have no sizes of their own."""
    if spec in ("auto", "flat"):
        return LevelSizes((), True)
    *written, last = spec.split("-")
    if last != "L":
        written = [*written, last]
    if not all(part.isdecimal() and int(part) > 0 for part in written):
        raise TreetopError(
            f"{name} {spec!r} is not understood: write level sizes {example}, or auto, or flat"
        )
    sizes = tuple(map(int, written))
    if list(sizes) != sorted(sizes):
        raise TreetopError(f"{name} {spec!r}: level sizes must increase towards the labels")
    return LevelSizes(sizes, last == "L")


def parse_tree(spec: str) -> LevelSizes:
    """Parse the level sizes of a label tree, whose last level is always the labels."""
    return parse_sizes("tree", spec, "that end in L, such as 16-256-L")


def parse_first_tree(spec: str) -> LevelSizes:
    """Parse the level sizes of a preliminary tree, which includes the labels only after a final L."""
    return parse_sizes("first_tree", spec, "such as 16-256-L")


def written_tree(levels: Sequence[int]) -> str:
    """Format level sizes, those of the labels last, as `parse_tree` reads them."""
    return "-".join([*map(str, levels[:-1]), "L"]) if len(levels) > 1 else "flat"


def tree_sizes(spec: str, labels: int) -> list[int]:
    """Return the sizes K[1] … K[D-1] of a tree over `labels` labels; larger levels are dropped."""
    written = parse_tree(spec)
    sizes = list(written.sizes)
    if not written.with_labels and sizes.pop() != labels:
        raise TreetopError(
            f"tree {spec!r} does not end in the {labels:,} labels: write level sizes that end in L"
        )
    return [size for size in sizes if 1 < size < labels]


def parse_budget(text: str) -> tuple[list[float], str]:
    """Parse ``300/400/600 steps`` into ([300, 400, 600], "steps"); other units: samples, epochs."""
    match = re.fullmatch(
        r"\s*(\d[\d_]*(?:\.\d+)?(?:/\d[\d_]*(?:\.\d+)?)*)\s*(step|sample|epoch)s?\s*", text
    )
    if not match:
        raise TreetopError(
            f"budget {text!r} is not understood: write 5 epochs, 2000 steps or 300/400/600 steps"
        )
    return [float(part.replace("_", "")) for part in match[1].split("/")], match[2] + "s"


def parse_assignment(text: str) -> tuple[str, Any]:
    """Parse ``alpha=0.5`` into ("alpha", 0.5); a value that is not valid JSON is kept as a string."""
    name, equals, value = text.partition("=")
    if not equals:
        raise TreetopError(f"{text!r} is not a setting: write name=value")
    try:
        return name.strip(), json.loads(value)
    except ValueError:
        return name.strip(), value
