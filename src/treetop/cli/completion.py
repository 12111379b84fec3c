"""Shell completion of values: presets, settings, names of formats and data sets.

Each function returns (value, description) pairs for the values that start with `incomplete`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

Completions = list[tuple[str, str]]


def starting_with(values: Iterable[tuple[str, str]], incomplete: str) -> Completions:
    """The pairs whose value starts with `incomplete`."""
    return [(value, about) for value, about in values if value.startswith(incomplete)]


def one_of(choices: Iterable[str]) -> Callable[[str], Completions]:
    """A completion function for a fixed list of values."""
    values = [(choice, "") for choice in choices]
    return lambda incomplete: starting_with(values, incomplete)


def complete_preset(incomplete: str) -> Completions:
    """Names of presets with their descriptions."""
    from treetop.settings import presets

    described = ((name, str(presets.read_preset(name).get("about", ""))) for name in presets.names())
    return starting_with(described, incomplete)


def complete_setting(incomplete: str) -> Completions:
    """``name=default`` for every setting; once a name is typed, ``name=value`` for each choice."""
    from treetop.fields import documented_fields, facts_of
    from treetop.runtime import Runtime
    from treetop.settings.making import TRANSFORMER
    from treetop.settings.schema import TransformerSettings

    fields = {**documented_fields(Runtime), **documented_fields(TransformerSettings)}
    name, equals, _ = incomplete.partition("=")
    if not equals:
        described = (
            (f"{name}={shown_value(default)}", facts_of(fields[name]).help)
            for name, default in TRANSFORMER.defaults.items()
        )
        return starting_with(described, incomplete)
    if name not in fields:
        return []
    declared = fields[name]
    choices = facts_of(declared).choices or (
        ("true", "false") if isinstance(declared.default, bool) else ()
    )
    return starting_with(((f"{name}={choice}", "") for choice in choices), incomplete)


def shown_value(value: object) -> str:
    """A default as ``--set`` takes it."""
    return json.dumps(value) if value is None or isinstance(value, bool) else str(value)


def complete_setting_name(incomplete: str) -> Completions:
    """Names of settings with their descriptions."""
    return [(name.partition("=")[0], about) for name, about in complete_setting(incomplete)]


def complete_format(incomplete: str) -> Completions:
    """Names of the formats that data can be written in."""
    from treetop.data.convert import WRITERS

    return starting_with(((name, "") for name in WRITERS), incomplete)


def complete_dataset(incomplete: str) -> Completions:
    """Names of the public data sets."""
    from treetop.data.download import NAMES

    return starting_with(((name, "") for name in NAMES), incomplete)
