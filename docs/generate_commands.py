"""Writes docs/reference/commands.md from the commands themselves."""

from pathlib import Path

import click
import typer

from treetop.cli.main import app

TARGET = Path(__file__).parent / "reference" / "commands.md"


def section(command: click.Command, name: str) -> list[str]:
    """Heading, purpose and options of a command."""
    context = click.Context(command, info_name=name)
    usage = " ".join(command.collect_usage_pieces(context))
    about = str(command.help or "").strip()
    lines = [f"## {name}", "", about, "", "```text", f"{name} {usage}", "```", ""]
    rows = []
    for parameter in command.get_params(context):
        if getattr(parameter, "hidden", False) or parameter.name == "help":
            continue
        named = parameter.param_type_name == "option"
        flags = ", ".join(parameter.opts) if named else str(parameter.name).upper()
        default = getattr(parameter, "default", None)
        plain = default not in (None, False, "", ()) and not callable(default)
        shown = f" Default: `{default}`." if plain else ""
        rows.append(f"| `{flags}` | {getattr(parameter, 'help', '') or ''}{shown} |")
    return lines + (["| | |", "| --- | --- |", *rows, ""] if rows else [])


def document() -> str:
    """The whole page."""
    lines = ["# Commands", "", "Written by `docs/generate_commands.py` from the code; do not edit.", ""]
    group = typer.main.get_command(app)
    for name, command in group.commands.items():
        inner = getattr(command, "commands", None)
        for sub, one in inner.items() if inner else ((None, command),):
            lines += section(one, " ".join(filter(None, ("treetop", name, sub))))
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    TARGET.write_text(document(), "utf-8")
