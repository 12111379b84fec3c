"""The type of label names: strings, integers, floats or booleans, one type per model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from treetop.errors import TreetopError

Label = str | int | float | bool
# What counts as a label name. A bool is an int to isinstance.
NAME_TYPES = (str, int, float, np.integer, np.floating, np.bool_)


def plain_label(name: object) -> Any:
    """Return a label name as a plain Python value instead of a numpy scalar or a subclass."""
    if isinstance(name, str):
        return str.__str__(name)  # of an Enum too, whose own __str__ is "Color.RED"
    if isinstance(name, bool | np.bool_):
        return bool(name)
    if isinstance(name, int | np.integer):
        return int(name)
    # -0.0 and 0.0 are the same label: adding 0 makes one of them.
    return float(name) + 0.0 if isinstance(name, float | np.floating) else name


def is_name(label: object) -> bool:
    """Whether an object is a valid label name: a string, an integer, a float or a boolean."""
    return isinstance(label, NAME_TYPES)


def is_absent(label: object) -> bool:
    """Whether an object stands for a missing value: None, NaN or pandas.NA."""
    if isinstance(label, float | np.floating):
        return bool(np.isnan(label))
    return label is None or type(label).__name__ in ("NAType", "NaTType")


def not_a_name(label: object) -> TreetopError:
    """Return the error for a label that is not a string or a number."""
    return TreetopError(
        f"Unknown label type: label {label!r} is of type {type(label).__name__}, "
        "not a string or a number"
    )


def type_of(names: Sequence[Label]) -> type:
    """Return the one type of plain label names; several types are an error."""
    examples: dict[type, Label] = {}
    for name in names:
        examples.setdefault(type(name), name)
    if len(examples) > 1:
        (one, first), (other, second) = list(examples.items())[:2]
        raise TreetopError(
            f"labels are of several types: {first!r} is of type {one.__name__}, {second!r} of type "
            f"{other.__name__}: give all names as strings, or all as numbers of one type"
        )
    return next(iter(examples), str)


def name_array(names: Sequence[Label]) -> np.ndarray:
    """Return plain label names of one type as an array: integers in 64 bits if they fit.

    Strings and larger integers are kept as Python objects: numpy would strip NULs from the end of
    strings and round the integers.
    """
    kind = type_of(names)
    if kind is str or not names:
        return objects(names)
    if kind is int:
        low, high = min(names), max(names)
        if low >= -(2**63) and high < 2**63:  # type: ignore[operator]
            return np.array(names, np.int64)
        return np.array(names, np.uint64) if low >= 0 and high < 2**64 else objects(names)  # type: ignore[operator]
    return np.array(names, kind)


def objects(names: Iterable[Label]) -> np.ndarray:
    """Return names as an array of Python objects."""
    return np.array(list(names), dtype=object)


def check_names(names: Sequence[Label]) -> None:
    """Raise unless label names differ from each other and each fits on one line of labels.txt."""
    if len(set(names)) != len(names):
        twice = next(name for name, count in Counter(names).items() if count > 1)
        raise TreetopError(f"label names must differ from each other: {twice!r} occurs twice")
    for name in names:
        if isinstance(name, float) and not np.isfinite(name):
            raise TreetopError(
                "Input y contains NaN or infinity, which cannot be labels: give documents without "
                "labels an empty list"
            )
        if isinstance(name, str) and (reason := unfit_reason(name)) is not None:
            raise TreetopError(f"label {name!r} {reason}")


def unfit_reason(name: str) -> str | None:
    """Explain why a string cannot be a label name and what to do; None if it can be."""
    if "\n" in name:
        return "contains a line break: replace it by a space"
    if not name.strip(" \t\r\f\v"):
        return "is empty: give documents without labels an empty list, and every label a name"
    try:
        name.encode()
    except UnicodeEncodeError:
        return "contains half of a surrogate pair, which is not valid Unicode: decode the text again"
    return None


def label_type(classes: np.ndarray) -> str:
    """Name the type of label names: ``str``, ``int``, ``float`` or ``bool``."""
    kinds = {"b": "bool", "i": "int", "u": "int", "f": "float"}
    if classes.dtype.kind == "O" and classes.size and type(classes[0]) is int:
        return "int"
    return kinds.get(classes.dtype.kind, "str")


def parsed_names(names: Sequence[str], kind: str) -> np.ndarray:
    """Return label names read from text in the type they had in training, named by `label_type`.

    A name that is not of that type raises ValueError.
    """
    if kind == "bool":
        if not set(names) <= {"True", "False"}:
            raise ValueError("not a boolean")
        return name_array([name == "True" for name in names])
    if kind == "int":
        return name_array([int(name) for name in names])
    if kind == "float":
        return name_array([float(name) for name in names])
    return objects(names)
