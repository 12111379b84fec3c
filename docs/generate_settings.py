"""docs/settings.md from `treetop.settings.schema` and `Runtime`: names, types, defaults and help."""

from dataclasses import Field
from pathlib import Path
from typing import Any

from treetop.fields import documented_fields, facts_of
from treetop.runtime import Runtime
from treetop.settings import presets
from treetop.settings.schema import LinearSettings, TransformerSettings

TARGET = Path(__file__).with_name("settings.md")


def table(rows: dict[str, Field[Any]]) -> list[str]:
    """Rows of the table, one per field, under the headings of their sections."""
    lines, section = ["| setting | type | default | meaning |", "| --- | --- | --- | --- |"], ""
    for name, one in rows.items():
        facts = facts_of(one)
        if facts.section and facts.section != section:
            section = facts.section
            lines.append(f"| **{section}** | | | |")
        told = all(choice in facts.help for choice in facts.choices)
        choices = "" if told else f" ({', '.join(facts.choices)})"
        meaning = (facts.help + choices).replace("|", "\\|")
        lines.append(
            f"| `{name}` | {str(one.type).replace('|', 'or')} | `{one.default!r}` | {meaning} |"
        )
    return lines


def own(kind: type, base: type) -> dict[str, Field[Any]]:
    """Fields of `kind` that `base` lacks, or that have another default there."""
    known = documented_fields(base)
    return {
        name: one
        for name, one in documented_fields(kind).items()
        if name not in known or known[name].default != one.default
    }


def document() -> str:
    """The whole page."""
    lines = [
        "# Settings",
        "",
        "Written by `make docs` from `src/treetop/settings/schema.py`; do not edit.",
        "",
        "Keyword arguments of `XRLinear` and `XRTransformer`, or `treetop train … --set name=value`.",
        "",
        "## XRLinear and XRTransformer",
        "",
        *table(documented_fields(LinearSettings)),
        "",
        "## XRTransformer only",
        "",
        *table(own(TransformerSettings, LinearSettings)),
        "",
        "## Runtime",
        "",
        "Where the work is done: never saved with a model. Fields of `treetop.Runtime`, which `fit`,",
        "`predict`, `load` and `serve` take as `runtime=`. Constructors and `--set` take `threads` and",
        "`verbose`, and for XRTransformer the fields from `device` to `tensorboard`.",
        "",
        *table(documented_fields(Runtime)),
        "",
        "## Presets",
        "",
        "| preset | model | what it is | settings |",
        "| --- | --- | --- | --- |",
    ]
    for name in presets.names():
        preset = presets.read_preset(name)
        listed = ", ".join(f"`{key}={value!r}`" for key, value in preset["settings"].items())
        base = f"as `{preset['like']}`" if "like" in preset else ""
        listed = "; ".join(filter(None, [base, listed]))
        lines.append(
            f"| `{name}` | {preset['model']} | {preset['about']} | {listed or 'the defaults'} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    TARGET.write_text(document(), "utf-8")
