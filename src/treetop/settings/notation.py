"""Parsers for the notation of setting values: n-grams, trees, budgets, assignments."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from treetop.errors import TreetopError


class Ngrams(NamedTuple):
    """One item of the `ngrams` notation, such as ``word:1-2@300``."""

    unit: str  # word or char
    lengths: tuple[int, int]  # minimum and maximum
    first: int | None  # number of characters to read from the beginning; None: all


class PecosTree(NamedTuple):
    """The parameters of PECOS's HierarchicalKMeans, from which the sizes of a tree follow."""

    nr_splits: int  # nodes that are joined to one of the level above
    min_codes: int  # levels are added until one has at most this many nodes
    max_leaf_size: int  # labels per cluster

    def clusters(self, labels: int) -> int:
        """Return the number of clusters of labels: a power of two, or 1 for a flat tree."""
        if self.max_leaf_size >= labels:
            return 1
        clusters = int(2 ** max(1, math.ceil(math.log2(labels / self.max_leaf_size))))
        if clusters > labels:
            raise TreetopError(
                f"a tree of PECOS over {labels:,} labels with max_leaf_size={self.max_leaf_size} would "
                "have empty clusters: use a larger max_leaf_size"
            )
        return clusters

    def sizes(self, labels: int) -> list[int]:
        """Return the sizes K[1] … K[D-1] of the tree over `labels` labels."""
        sizes = [self.clusters(labels)]
        while self.min_codes > 1 and sizes[0] > self.min_codes:
            sizes.insert(0, -(-sizes[0] // self.nr_splits))
        return [size for size in sizes if size > 1]


class LevelSizes(NamedTuple):
    """Written level sizes of a tree; `with_labels`: whether a final L stands for the labels."""

    sizes: tuple[int, ...]
    with_labels: bool
    pecos: PecosTree | None = None  # determines the sizes, once the number of labels is known


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
    if spec.startswith("pecos:"):
        return LevelSizes((), True, parse_pecos_tree(name, spec))
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


def parse_pecos_tree(name: str, spec: str) -> PecosTree:
    """Parse ``pecos:nr_splits=8,min_codes=8,max_leaf_size=16``."""
    pattern = "pecos:" + ",".join(rf"{field}=([1-9]\d*)" for field in PecosTree._fields)
    match = re.fullmatch(pattern, spec.replace(" ", ""))
    if not match or int(match[1]) < 2:
        raise TreetopError(
            f"{name} {spec!r} is not understood: write pecos:nr_splits=16,min_codes=16,"
            "max_leaf_size=100, with nr_splits of at least 2"
        )
    return PecosTree(*map(int, match.groups()))


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
    if written.pecos is not None:
        return written.pecos.sizes(labels)
    sizes = list(written.sizes)
    if not written.with_labels and sizes.pop() != labels:
        raise TreetopError(
            f"tree {spec!r} does not end in the {labels:,} labels: write level sizes that end in L"
        )
    return [size for size in sizes if 1 < size < labels]


def values_by_level(name: str, spec: str) -> tuple[str, ...]:
    """Parse ``true/.../both`` into ("true", "...", "both"): a value per level, the labels' last.

    ``...`` stands for as many repetitions of the value before it as the tree needs. In a tree of fewer
    levels than other values, the last ones count.
    """
    values = tuple(part.strip() for part in spec.split("/"))
    if "" in values or values[0] == "..." or values.count("...") > 1:
        raise TreetopError(
            f"{name} {spec!r} is not understood: write one value, one per level such as a/b/c, "
            "or a/.../c to repeat a"
        )
    return values


def names_by_level(name: str) -> Callable[[str], list[str]]:
    """Return the parser of a setting whose values by level are names."""
    return lambda spec: [value for value in values_by_level(name, spec) if value != "..."]


def numbers_by_level(name: str, kind: type[int] | type[float]) -> Callable[[str], list[float]]:
    """Return the parser of a setting whose values by level are numbers."""

    def parse(spec: str) -> list[float]:
        try:
            return [kind(value) for value in names_by_level(name)(spec)]
        except ValueError:
            raise TreetopError(
                f"{name} is {spec!r}: it must be of type {kind.__name__}, "
                "or one per level such as 2/2/1"
            ) from None

    return parse


def at_level(name: str, value: object, level: int, levels: int) -> Any:
    """Return the value of a setting for a level from 1 to `levels`; the same for all, or its own."""
    if not isinstance(value, str):
        return value
    values = values_by_level(name, value)
    if "..." in values:
        at = values.index("...")
        repeated = (values[at - 1],) * (levels - len(values) + 1)
        values = (*values[:at], *repeated, *values[at + 1 :])[-levels:]
    if len(values) == 1:
        return values[0]
    if len(values) != levels:
        raise TreetopError(
            f"{name} {value!r} has {len(values)} values, but the tree has {levels} such levels: "
            "write one value, one per level, or ... after a value to repeat"
        )
    return values[level - 1]


class Budget(NamedTuple):
    """A written budget: a total, or a figure per level; `repeated`: the last one for all others."""

    figures: list[float]
    unit: str  # steps, samples or epochs
    repeated: bool


def parse_budget(text: str) -> Budget:
    """Parse ``300/400/600 steps`` into ([300, 400, 600], "steps"); other units: samples, epochs.

    With ``/...`` after the figures, the last one is that of all further levels too.
    """
    match = re.fullmatch(
        r"\s*(\d[\d_]*(?:\.\d+)?(?:/\d[\d_]*(?:\.\d+)?)*)(/\.\.\.)?\s*(step|sample|epoch)s?\s*", text
    )
    if not match:
        raise TreetopError(
            f"budget {text!r} is not understood: write 5 epochs, 2000 steps or 300/400/600 steps"
        )
    figures = [float(part.replace("_", "")) for part in match[1].split("/")]
    return Budget(figures, match[3] + "s", match[2] is not None)


def parse_warmup(value: float | str) -> tuple[list[str], str]:
    """Parse ``100/100/200 steps`` into (["100", "100", "200"], "steps"); without unit, fractions."""
    text = str(value).strip()
    unit = "steps" if text.endswith("steps") else "fractions"
    figures = names_by_level("warmup")(text.removesuffix("steps"))
    valid = r"\d[\d_]*" if unit == "steps" else r"\d+(\.\d+)?([eE]-?\d+)?|\.\d+"
    if not all(re.fullmatch(valid, figure) for figure in figures):
        raise TreetopError(
            f"warmup {value!r} is not understood: write a fraction such as 0.1, one per level such as "
            "0.2/0.1/0.1, or steps such as 100/100/200 steps"
        )
    return list(values_by_level("warmup", text.removesuffix("steps"))), unit


def warmup_fractions(text: str) -> list[float]:
    """Return the fractions in a `warmup`; none if it is in steps."""
    figures, unit = parse_warmup(text)
    return [] if unit == "steps" else [float(figure) for figure in figures if figure != "..."]


def parse_assignment(text: str) -> tuple[str, Any]:
    """Parse ``alpha=0.5`` into ("alpha", 0.5); a value that is not valid JSON is kept as a string."""
    name, equals, value = text.partition("=")
    if not equals:
        raise TreetopError(f"{text!r} is not a setting: write name=value")
    try:
        return name.strip(), json.loads(value)
    except ValueError:
        return name.strip(), value


UNITS_OF_TIME = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def parse_time(text: str) -> float:
    """Convert a time such as ``30m`` or ``1.5h`` to seconds."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(s|m|min|h)\s*", text)
    if not match or float(match[1]) == 0:
        raise TreetopError(f"time {text!r} is not understood: write it as 90s, 30m or 1.5h")
    return float(match[1]) * UNITS_OF_TIME[match[2]]
