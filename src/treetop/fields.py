"""Dataclass fields with help, bounds and choices, of which settings and options are made."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Sequence
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any

from treetop.errors import TreetopError

META = "treetop"


@dataclass(frozen=True)
class Documented:
    """What is known of a field besides its name, type and default."""

    help: str
    section: str = ""  # heading it is listed under
    choices: tuple[str, ...] = ()
    above: float | None = None  # exclusive bound
    at_least: float | None = None
    below: float | None = None  # exclusive bound
    parse: Callable[[Any], Any] | None = None  # raises unless the notation of the value is understood
    flags: tuple[str, ...] | None = None  # of a command's option; () makes it an argument, None --NAME
    environment: str | None = None  # variable that a command's option is read from


def documented(
    default: Any,
    help: str,
    *,
    section: str = "",
    choices: Sequence[str] = (),
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    parse: Callable[[Any], Any] | None = None,
    flags: tuple[str, ...] | None = None,
    environment: str | None = None,
) -> Any:
    """A dataclass field with everything a user should know; `MISSING` is no default."""
    facts = Documented(help, section, tuple(choices), above, at_least, below, parse, flags, environment)
    return field(default=default, metadata={META: facts})


def facts_of(one: Field[Any]) -> Documented:
    """Help, bounds and choices of a field."""
    facts: Documented = one.metadata[META]
    return facts


def documented_fields(kind: type) -> dict[str, Field[Any]]:
    """The fields of a dataclass that were made by `documented`, by name."""
    return {one.name: one for one in fields(kind) if META in one.metadata}


def plain(value: Any) -> Any:
    """`value` with numpy's numbers as Python's and lists as tuples."""
    if isinstance(value, list):
        return tuple(map(plain, value))
    if isinstance(value, bool | str) or value is None:
        return value
    if type(value).__module__ == "numpy" and getattr(value, "ndim", 1) == 0:
        return value.item()
    if isinstance(value, numbers.Integral):
        return int(value)
    return value


def annotation_of(one: Field[Any]) -> str:
    """The type a field is declared with, as it is written in source."""
    kind: Any = one.type
    return str(kind.__name__ if isinstance(kind, type) else kind).replace("pathlib.", "")


def check_fields(instance: Any) -> None:
    """Make the values of a frozen dataclass plain, and raise unless each of them is allowed."""
    for one in documented_fields(type(instance)).values():
        value = plain(getattr(instance, one.name))
        if isinstance(value, str) and "Path" in annotation_of(one):
            value = Path(value)
        object.__setattr__(instance, one.name, value)
        check_field(one, value)


def check_field(one: Field[Any], value: Any) -> None:
    """Raise unless `value` has the field's type, is within its bounds and can be parsed."""
    check_type(one.name, value, annotation_of(one))
    if value is None:
        return
    facts = facts_of(one)
    if facts.choices and value not in facts.choices:
        raise TreetopError(f"{one.name} is {value!r}: choose one of {', '.join(facts.choices)}")
    if isinstance(value, float) and not math.isfinite(value):
        raise TreetopError(f"{one.name} is {value}: it must be a finite number")
    if facts.above is not None and not value > facts.above:
        raise TreetopError(f"{one.name} is {value}: it must be above {facts.above:g}")
    if facts.at_least is not None and not value >= facts.at_least:
        raise TreetopError(f"{one.name} is {value}: it must be at least {facts.at_least:g}")
    if facts.below is not None and not value < facts.below:
        raise TreetopError(f"{one.name} is {value}: it must be below {facts.below:g}")
    if facts.parse is not None:
        facts.parse(value)


def check_type(name: str, value: Any, annotation: str) -> None:
    """Raise unless `value` has one of the types a field is declared with."""
    allowed: dict[str, tuple[type, ...]] = {
        "int": (int,),
        "float": (int, float),
        "str": (str,),
        "bool": (bool,),
        "Path": (Path,),
        "None": (type(None),),
        "tuple[str, ...]": (tuple,),
    }
    kinds = [part.strip() for part in annotation.split("|")]
    for kind in kinds:
        if not isinstance(value, allowed[kind]) or (isinstance(value, bool) and kind != "bool"):
            continue
        if not isinstance(value, tuple) or all(isinstance(member, str) for member in value):
            return
    raise TreetopError(f"{name} is {value!r}: it must be of type {' or '.join(kinds)}")
