"""The documented fields of a dataclass as the options of a command."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field
from types import GenericAlias
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import typer

from treetop.cli import completion
from treetop.fields import Documented, annotation_of, documented_fields, facts_of

Options = TypeVar("Options")
# Completion of an option's value, by the name of its field.
COMPLETIONS: dict[str, Callable[[str], Any]] = {
    "form": completion.complete_format,
    "preset": completion.complete_preset,
    "assignments": completion.complete_setting,
    "member": completion.complete_setting,
}
# Placeholders in help pages, by the type of a field. Others are named after the option.
PLACEHOLDERS = {"int": "N", "float": "NUMBER", "Path": "PATH"}


def options_from(kind: type[Options]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Call a command's function with an instance of `kind`, whose documented fields become options.

    Further parameters of the function stay parameters of the command.
    """
    hints = get_type_hints(kind)
    fields = documented_fields(kind)

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        _, *others = inspect.signature(function).parameters.values()

        def command(**values: object) -> None:
            chosen = {name: value for name, value in values.items() if value is not None}
            own = {name: chosen.pop(name) for name in fields if name in chosen}
            function(kind(**own), **chosen)

        parameters = [parameter(declared, hints[name]) for name, declared in fields.items()]
        kept = [other.replace(kind=inspect.Parameter.KEYWORD_ONLY) for other in others]
        command.__doc__ = function.__doc__
        command.__signature__ = inspect.Signature([*parameters, *kept])  # type: ignore[attr-defined]
        return command

    return decorate


def parameter(declared: Field[Any], hint: object) -> inspect.Parameter:
    """A field as a parameter that typer understands, annotated with flags, placeholder and help."""
    facts = facts_of(declared)
    metavar = facts.metavar or placeholder_of(declared, facts)
    complete = COMPLETIONS.get(declared.name)
    if complete is None and metavar is not None and "|" in metavar:
        complete = completion.one_of(metavar.split("|"))
    info: Any
    if facts.flags == ():
        info = typer.Argument(help=facts.help, metavar=metavar, autocompletion=complete)
    else:
        info = typer.Option(
            *(facts.flags or (f"--{declared.name.replace('_', '-')}",)),
            help=facts.help,
            metavar=metavar,
            envvar=facts.environment,
            autocompletion=complete,
            rich_help_panel=facts.section or None,
        )
    default = inspect.Parameter.empty if declared.default is MISSING else declared.default
    if get_origin(hint) is tuple:  # of any length; click has lists for what may be given many times
        hint = GenericAlias(list, get_args(hint)[:1])
        default = inspect.Parameter.empty if declared.default is MISSING else None
    return inspect.Parameter(
        declared.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[hint, info],
    )


def placeholder_of(declared: Field[Any], facts: Documented) -> str | None:
    """What stands for a field's value in help pages; None for a flag, which has no value."""
    kind = annotation_of(declared).split(" | ")[0]
    if kind == "bool":
        return None
    if facts.choices:
        return "|".join(facts.choices)
    if facts.flags == () or kind not in PLACEHOLDERS:
        return declared.name.upper()
    return PLACEHOLDERS[kind]
