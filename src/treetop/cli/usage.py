"""Help pages: commands and options in groups, placeholders of values, examples.

Plain text on purpose: it can be searched and piped, needs no colour, and does not import rich.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from treetop.cli.console import Console

OptionRows = dict[str, list[tuple[str, str]]]
# The group of options that name none, and the group that comes last.
GENERAL = "Options"
OUTPUT = "Output"
CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}

Verbose = Annotated[
    bool,
    typer.Option(
        "-v", "--verbose", help="Show versions, the duration of each step, and tracebacks of errors."
    ),
]
Quiet = Annotated[
    bool, typer.Option("-q", "--quiet", help="Print only results and errors: no progress, no notes.")
]
DATA_HELP = "File or folder in any supported format (see `treetop data formats`)."
MODEL_HELP = "Model folder, as written by `treetop train`."
JSON_HELP = "Print one JSON document instead of text."
JsonOption = Annotated[bool, typer.Option("--json", help=JSON_HELP)]


class HelpCommand(TyperCommand):
    """A command whose help page lists options by group and ends with examples."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """``DATA -o OUTPUT [OPTIONS]``: whatever is required is in the usage line."""
        return usage_pieces(self.params)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options, one section per group."""
        for heading, rows in option_rows(self.get_params(ctx)).items():
            with formatter.section(heading):
                formatter.write_dl(rows)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples as they are, without wrapping."""
        if self.epilog:
            with formatter.section("Examples"):
                formatter.write("".join(f"  {line}\n" for line in self.epilog.splitlines()))


class HelpGroup(TyperGroup):
    """A group whose help page lists its commands by task."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """``COMMAND [OPTIONS]``."""
        return ["COMMAND", "[OPTIONS]"]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write commands by task, then the options that hold for all of them."""
        for heading, names in commands_by_group(self).items():
            shown = [(name, self.commands[name].get_short_help_str(200)) for name in names]
            with formatter.section(heading):
                formatter.write_dl(shown)
        for heading, rows in option_rows(self.get_params(ctx)).items():
            with formatter.section(heading):
                formatter.write_dl(rows)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write where to read on, without wrapping."""
        if self.epilog:
            formatter.write(f"\n{self.epilog}\n")


def commands_by_group(group: Any) -> dict[str, list[str]]:
    """Names of the visible commands of a typer group, by the heading they are listed under."""
    headings: dict[str, list[str]] = {}
    for name, command in group.commands.items():
        if not command.hidden:
            heading = getattr(command, "rich_help_panel", None)
            headings.setdefault(heading if isinstance(heading, str) else "Commands", []).append(name)
    return headings


def usage_pieces(parameters: Iterable[Any]) -> list[str]:
    """Placeholders of a usage line: arguments, required options, then ``[OPTIONS]``."""
    pieces, required = [], []
    for parameter in parameters:
        if parameter.param_type_name == "argument":
            name = f"{placeholder(parameter)}{'...' if parameter.nargs == -1 else ''}"
            pieces.append(name if parameter.required else f"[{name}]")
        elif parameter.required:
            required.append(f"{parameter.opts[0]} {placeholder(parameter)}")
    return [*pieces, *required, "[OPTIONS]"]


def option_rows(parameters: Iterable[Any]) -> OptionRows:
    """Rows (flags, help) of a command's arguments and options, by the heading of their group."""
    rows: OptionRows = {}
    for parameter in parameters:
        if getattr(parameter, "hidden", False):
            continue
        if parameter.param_type_name == "argument":
            heading, shown = "Arguments", placeholder(parameter)
        else:
            flags = [*sorted(parameter.opts, key=len), *parameter.secondary_opts]
            heading, shown = group_of(parameter), ", ".join(flags)
            if not parameter.is_flag:
                shown += f" {placeholder(parameter)}"
        rows.setdefault(heading, []).append((shown, help_of(parameter)))
    order = ["Arguments", GENERAL, *rows, OUTPUT]
    ordered = sorted(
        rows, key=lambda heading: order.index(heading) if heading != OUTPUT else len(order)
    )
    return {heading: rows[heading] for heading in ordered}


def group_of(option: Any) -> str:
    """The heading that an option is listed under."""
    if option.name in ("help", "verbose", "quiet", "json", "version"):
        return OUTPUT
    heading = getattr(option, "rich_help_panel", None)
    return heading if isinstance(heading, str) else GENERAL


def help_of(parameter: Any) -> str:
    """Help of an argument or option with its default, and whether it is required."""
    facts = []
    default = parameter.default
    if isinstance(default, str | int | float) and not isinstance(default, bool) and default != "":
        facts.append(f"default: {default}")
    environment = getattr(parameter, "envvar", None)
    if environment:
        facts.append(f"environment: {environment}")
    if parameter.required and parameter.param_type_name == "option":
        facts.append("required")
    if getattr(parameter, "multiple", False):
        facts.append("repeatable")
    text = str(parameter.help or "")
    return f"{text} [{', '.join(facts)}]" if facts else text


def placeholder(parameter: Any) -> str:
    """What stands for the value of an argument or option: ``DATA``, ``NAME=VALUE``, ``N``."""
    return str(parameter.metavar or parameter.name.upper())


def command(
    app: typer.Typer, name: str, group: str | None = None, examples: str = "", hidden: bool = False
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add a function to `app` as a command with ``-v`` and ``-q``; its `console` follows from them."""

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        add = app.command(
            name, cls=HelpCommand, rich_help_panel=group, epilog=examples or None, hidden=hidden
        )
        add(with_console(function))
        return function

    return decorate


def with_console(function: Callable[..., None]) -> Callable[..., None]:
    """`function` with the options ``-v`` and ``-q`` in place of its parameter `console`."""
    declared = inspect.signature(function, eval_str=True).parameters
    own = [
        parameter.replace(kind=parameter.KEYWORD_ONLY)
        for name, parameter in declared.items()
        if name != "console"
    ]

    def run(ctx: typer.Context, verbose: bool, quiet: bool, **values: Any) -> None:
        if "console" in declared:
            values["console"] = with_verbosity(ctx.obj, verbose, quiet)
        function(**values)

    added = {"ctx": typer.Context, "verbose": Verbose, "quiet": Quiet}
    parameters = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            annotation=annotation,
            default=inspect.Parameter.empty if name == "ctx" else False,
        )
        for name, annotation in added.items()
    ]
    run.__doc__ = function.__doc__
    run.__signature__ = inspect.Signature([parameters[0], *own, *parameters[1:]])  # type: ignore[attr-defined]
    return run


def with_verbosity(console: Any, verbose: bool, quiet: bool) -> Console:
    """The console of a context (or a new one), more or less verbose by the flags that were given."""
    known = console if isinstance(console, Console) else Console()
    return replace(known, verbosity=known.verbosity + verbose - quiet)
