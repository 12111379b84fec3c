"""The little languages that settings are written in, parsed once, before any work starts."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from treetop.errors import TreetopError

# A unit, the shortest and the longest n-gram, and how many characters are read: None is all.
Counted = tuple[str, tuple[int, int], int | None]


class LevelSizes(NamedTuple):
    """Sizes of a tree's levels as they are written, and whether the labels follow as the last one."""

    sizes: tuple[int, ...]
    with_labels: bool


def parse_views(spec: str) -> list[list[Counted]]:
    """``word:1-2+word:1@300|word:1-2`` as what each tree counts; nothing yet for ``auto``."""
    return [] if spec == "auto" else [parse_ngrams(view) for view in spec.split("|")]


def parse_ngrams(spec: str) -> list[Counted]:
    """``word:1-2+char:3@400`` as [("word", (1, 2), None), ("char", (3, 3), 400)]."""
    found = []
    for part in spec.replace(" ", "").split("+"):
        match = re.fullmatch(r"(word|char):([1-9]\d?)(?:-([1-9]\d?))?(?:@([1-9]\d*))?", part)
        if not match or int(match[3] or match[2]) < int(match[2]):
            raise TreetopError(
                f"ngrams {spec!r} is not understood: write word:1-2, char:3, "
                "word:1@400 for the first 400 characters, several joined by +, "
                "and after | what further trees count"
            )
        first = int(match[4]) if match[4] else None
        found.append((match[1], (int(match[2]), int(match[3] or match[2])), first))
    return found


def parse_sizes(name: str, spec: str, example: str) -> LevelSizes:
    """``16-256-L`` as ((16, 256), True)."""
    *written, last = spec.split("-")
    if last != "L":
        written = [*written, last]
    if not all(part.isdecimal() and int(part) > 0 for part in written):
        raise TreetopError(f"{name} {spec!r} is not understood: write {example}")
    sizes = tuple(map(int, written))
    if list(sizes) != sorted(sizes):
        raise TreetopError(f"{name} {spec!r}: level sizes must grow towards the labels")
    return LevelSizes(sizes, last == "L")


def parse_tree(spec: str) -> LevelSizes:
    """Level sizes of a label tree; none for ``auto`` and ``flat``. The labels are its last level."""
    if spec in ("auto", "flat"):
        return LevelSizes((), True)
    return parse_sizes("tree", spec, "level sizes that end in L, such as 16-256-L, or auto, or flat")


def written_tree(levels: Sequence[int]) -> str:
    """The inverse of `parse_tree`: the spec of a tree with these level sizes, the labels' last."""
    return "-".join([*map(str, levels[:-1]), "L"]) if len(levels) > 1 else "flat"


def tree_sizes(spec: str, labels: int) -> list[int]:
    """Level sizes K[1] … K[D-1] of a label tree over `labels` labels; larger levels are left out."""
    written = parse_tree(spec)
    sizes = list(written.sizes)
    if not written.with_labels and sizes.pop() != labels:
        raise TreetopError(
            f"tree {spec!r} does not end in the {labels:,} labels: write level sizes that end in L"
        )
    return [size for size in sizes if 1 < size < labels]


def parse_first_tree(spec: str) -> LevelSizes:
    """Level sizes of a preliminary tree; without a final L the labels are not one of its levels."""
    if spec in ("auto", "flat"):
        return LevelSizes((), True)
    return parse_sizes("first_tree", spec, "level sizes such as 16-256-L, or auto, or flat")


def parse_budget(text: str) -> tuple[list[float], str]:
    """``300/400/600 steps`` as ([300, 400, 600], "steps"); the unit may also be samples or epochs."""
    match = re.fullmatch(
        r"\s*(\d[\d_]*(?:\.\d+)?(?:/\d[\d_]*(?:\.\d+)?)*)\s*(step|sample|epoch)s?\s*", text
    )
    if not match:
        raise TreetopError(
            f"budget {text!r} is not understood: write 5 epochs, 2000 steps or 300/400/600 steps"
        )
    return [float(part.replace("_", "")) for part in match[1].split("/")], match[2] + "s"


def parse_assignment(text: str) -> tuple[str, Any]:
    """``alpha=0.5`` as ("alpha", 0.5); a value that is not JSON is a string."""
    name, equals, value = text.partition("=")
    if not equals:
        raise TreetopError(f"{text!r} is not a setting: write name=value")
    try:
        return name.strip(), json.loads(value)
    except ValueError:
        return name.strip(), value
