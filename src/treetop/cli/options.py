"""The options of commands as dataclasses: one documented field makes one option.

Nothing here imports what a command needs: ``treetop --help`` reads this module.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass
from pathlib import Path
from types import GenericAlias
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import typer

from treetop.fields import check_fields, documented, documented_fields, facts_of

Options = TypeVar("Options")


@dataclass(frozen=True)
class TrainOptions:
    """Options of `treetop train`."""

    data: Path = documented(MISSING, "A folder or file in any supported format.", flags=())
    output: Path = documented(MISSING, "Folder for the model.", flags=("-o", "--output"))
    model: str | None = documented(None, "xr-linear or xr-transformer; else by the preset.")
    preset: str | None = documented(None, "Named settings, such as fast, frozen or eurlex-4k.")
    assignments: tuple[str, ...] = documented((), "Change a setting: name=value.", flags=("--set",))
    encoder: str | None = documented(None, "Encoder of xr-transformer: Hub name or folder.")
    validation: str = documented("dev", "Split to choose the best weights on; none: no such split.")
    resume: bool = documented(False, "Go on with a run that was stopped.")
    overwrite: bool = documented(False, "Discard an earlier run and start again.")
    ensemble: bool = documented(False, "Train all members that the preset names.")
    member: tuple[str, ...] = documented((), "A member of an ensemble: name=value,name=value.")
    combine: str | None = documented(None, "Ensemble: average, rank, sigmoid or softmax.")
    text_column: str | None = documented(None, "Tables: texts.")
    labels_column: str | None = documented(None, "Tables: labels.")

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class EvaluateOptions:
    """Options of `treetop evaluate`."""

    model: Path = documented(MISSING, "A model folder.", flags=())
    data: Path = documented(MISSING, "A folder or file in any supported format.", flags=())
    split: str = documented("test", "Split of the data to evaluate on.")
    json: bool = documented(False, "Print JSON.")
    propensity: str = documented("default", "Propensity preset: default, wikipedia or amazon.")
    threshold: float | None = documented(None, "Also F1 of labels that score at least this.")
    keep: bool = documented(False, "Note the figures in the model's config and card.")
    text_column: str | None = documented(None, "Tables: texts.")
    labels_column: str | None = documented(None, "Tables: labels.")

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class DemoOptions:
    """Options of `treetop demo`."""

    linear: bool = documented(False, "Train XRLinear only, which requires no torch.")
    fine_tune: bool | None = documented(
        None,
        "Also fine-tune the encoder; by default only on a GPU.",
        flags=("--fine-tune/--no-fine-tune",),
    )
    output: Path | None = documented(None, "Save the best model here too.", flags=("-o", "--output"))
    serve: bool = documented(
        False, "Open the web page on the best model; a model kept from an earlier run is reused."
    )
    port: int = documented(8000, "Port of the web page.", at_least=0, below=65536)
    export: Path | None = documented(
        None, "Write the records to this new folder, a CSV file per split, and stop."
    )
    json: bool = documented(False, "Print the results as JSON.")

    def __post_init__(self) -> None:
        check_fields(self)


def options_from(kind: type[Options]) -> Callable[[Callable[[Options], None]], Callable[..., None]]:
    """Call a command's function with an instance of `kind`, whose documented fields typer reads."""
    hints = get_type_hints(kind)
    parameters = [parameter(one, hints[name]) for name, one in documented_fields(kind).items()]

    def decorate(function: Callable[[Options], None]) -> Callable[..., None]:
        def command(**given: Any) -> None:
            function(kind(**{name: value for name, value in given.items() if value is not None}))

        command.__doc__ = function.__doc__
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return command

    return decorate


def parameter(one: Field[Any], hint: Any) -> inspect.Parameter:
    """A field as typer wants it: a parameter annotated with its flags and its help."""
    facts = facts_of(one)
    if facts.flags == ():
        info = typer.Argument(help=facts.help)
    else:
        flags = facts.flags or (f"--{one.name.replace('_', '-')}",)
        info = typer.Option(*flags, envvar=facts.environment, help=facts.help)
    default = inspect.Parameter.empty if one.default is MISSING else one.default
    if get_origin(hint) is tuple:  # of any length; click has lists for what may be given many times
        hint, default = GenericAlias(list, get_args(hint)[:1]), None
    return inspect.Parameter(
        one.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[hint, info]
    )
