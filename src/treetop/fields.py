"""Dataclass fields with help, bounds and choices: the declarations of settings and of CLI options."""

from __future__ import annotations

import math
import numbers
import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any

from treetop.errors import TreetopError

META = "treetop"


@dataclass(frozen=True)
class Documented:
    """Metadata of a field besides its name, type and default.

    `above` and `below` are exclusive bounds, `at_least` is inclusive. `parse` raises a `TreetopError`
    unless it understands the value. `by_level` splits a string into one value per level, each of which
    must be one of the choices and in bounds. `section` is the heading that the field is listed under.

    `flags`, `metavar` and `environment` describe the option of a command: its flags (``()`` makes it a
    positional argument, None ``--NAME``), the placeholder of its value in help texts, and the
    environment variable it can be read from.
    """

    help: str
    section: str = ""
    choices: tuple[str, ...] = ()
    above: float | None = None
    at_least: float | None = None
    below: float | None = None
    parse: Callable[[Any], Any] | None = None
    by_level: Callable[[str], Sequence[Any]] | None = None
    flags: tuple[str, ...] | None = None
    metavar: str | None = None
    environment: str | None = None


def documented(
    default: object,
    help: str,
    *,
    section: str = "",
    choices: Sequence[str] = (),
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    parse: Callable[[Any], Any] | None = None,
    by_level: Callable[[str], Sequence[Any]] | None = None,
    flags: tuple[str, ...] | None = None,
    metavar: str | None = None,
    environment: str | None = None,
) -> Any:
    """Declare a dataclass field with its documentation and its checks.

    `default` is ``dataclasses.MISSING`` for a required field. The other parameters are those of
    `Documented`.
    """
    facts = Documented(
        help,
        section,
        tuple(choices),
        above,
        at_least,
        below,
        parse,
        by_level,
        flags,
        metavar,
        environment,
    )
    return field(default=default, metadata={META: facts})


def facts_of(declared: Field[Any]) -> Documented:
    """The metadata of a field that was made by `documented`."""
    facts: Documented = declared.metadata[META]
    return facts


def documented_fields(kind: type) -> dict[str, Field[Any]]:
    """The fields of a dataclass that were made by `documented`, by name, in order."""
    return {declared.name: declared for declared in fields(kind) if META in declared.metadata}


def plain(value: Any) -> Any:
    """Convert numpy scalars to Python numbers and lists to tuples; return other values unchanged."""
    if isinstance(value, list):
        return tuple(map(plain, value))
    if isinstance(value, bool | str) or value is None:
        return value
    if type(value).__module__ == "numpy" and getattr(value, "ndim", 1) == 0:
        return value.item()
    if isinstance(value, numbers.Integral):
        return int(value)
    return value


def annotation_of(declared: Field[Any]) -> str:
    """The type annotation of a field as written in the source, such as ``int | None``."""
    kind: Any = declared.type
    return str(kind.__name__ if isinstance(kind, type) else kind).replace("pathlib.", "")


def check_fields(instance: object) -> None:
    """Normalize the values of a frozen dataclass; raise a `TreetopError` for the first invalid one.

    To be called in ``__post_init__``: it is the one place that sets attributes of a frozen instance.
    """
    for declared in documented_fields(type(instance)).values():
        value = plain(getattr(instance, declared.name))
        if "Path" in annotation_of(declared):
            value = as_paths(value)
        object.__setattr__(instance, declared.name, value)
        check_field(declared, value)


def as_paths(value: object) -> Any:
    """A string, or those of a tuple, as paths."""
    if isinstance(value, tuple):
        return tuple(map(as_paths, value))
    return Path(value) if isinstance(value, str) else value


def check_field(declared: Field[Any], value: object) -> None:
    """Raise a `TreetopError` unless `value` has the field's type, is in bounds and can be parsed."""
    name = declared.name
    check_type(name, value, annotation_of(declared))
    if value is None:
        return
    facts = facts_of(declared)
    listed = facts.by_level(value) if facts.by_level and isinstance(value, str) else (value,)
    for one in listed:
        check_value(name, one, facts)
    if facts.parse is not None:
        facts.parse(value)


def check_value(name: str, value: Any, facts: Documented) -> None:
    """Raise a `TreetopError` unless a value is one of the choices and in bounds."""
    if isinstance(value, int) and abs(value) >= 2**63:
        raise TreetopError(f"{name} is {str(value)[:40]}: it must fit into 64 bits")
    if facts.choices and value not in facts.choices:
        shown = repr(value[:60] if isinstance(value, str) else value)
        raise TreetopError(f"{name} is {shown}: choose one of {', '.join(facts.choices)}")
    if isinstance(value, float) and not math.isfinite(value):
        raise TreetopError(f"{name} is {value}: it must be a finite number")
    if facts.above is not None and not value > facts.above:
        raise TreetopError(f"{name} is {value}: it must be above {written(facts.above)}")
    if facts.at_least is not None and not value >= facts.at_least:
        raise TreetopError(f"{name} is {value}: it must be at least {written(facts.at_least)}")
    if facts.below is not None and not value < facts.below:
        raise TreetopError(f"{name} is {value}: it must be below {written(facts.below)}")


def written(bound: float) -> str:
    """Write a bound of a setting: whole numbers in full."""
    return str(bound) if isinstance(bound, int) else f"{bound:g}"


def check_type(name: str, value: object, annotation: str) -> None:
    """Raise a `TreetopError` unless `value` has one of the types of the annotation."""
    allowed: dict[str, tuple[type, ...]] = {
        "int": (int,),
        "float": (int, float),
        "str": (str,),
        "bool": (bool,),
        "Path": (Path,),
        "None": (type(None),),
        "tuple[str, ...]": (tuple,),
        "tuple[Path, ...]": (tuple,),
    }
    kinds = [part.strip() for part in annotation.split("|")]
    for kind in kinds:
        if not isinstance(value, allowed[kind]) or (isinstance(value, bool) and kind != "bool"):
            continue
        member = Path if "Path" in kind else str
        if not isinstance(value, tuple) or all(isinstance(one, member) for one in value):
            return
    raise TreetopError(f"{name} is {value!r}: it must be of type {' or '.join(kinds)}")


def parameters_section(*declared: Field[Any]) -> str:
    """Write the Parameters section of a class docstring from the help of fields."""
    lines = ["Parameters", "----------", *(line for one in declared for line in parameter_lines(one))]
    return textwrap.indent("\n".join([*lines, "", ""]), "    ", lambda line: line != "\n")


def parameter_lines(declared: Field[Any]) -> list[str]:
    """Write the lines of a docstring that describe one field."""
    facts = facts_of(declared)
    kind = annotation_of(declared).replace(" | ", " or ")
    if facts.choices and len(facts.choices) < 8:
        kind = "{" + ", ".join(map(repr, facts.choices)) + "}"
    text = facts.help[:1].upper() + facts.help[1:].rstrip(".") + "."
    # The help is also that of config.json and the command line.
    text = re.sub(r"\bnull\b", "None", re.sub(r"\bfalse\b", "False", text))
    return [
        f"{declared.name} : {kind}, default={declared.default!r}",
        *textwrap.wrap(text, 92, initial_indent="    ", subsequent_indent="    "),
    ]
