"""What the commands ``presets``, ``settings``, ``data formats`` and ``data list`` print."""

from __future__ import annotations

import textwrap
from typing import Any

from treetop.cli.completion import shown_value
from treetop.cli.console import Console
from treetop.cli.screen import print_table
from treetop.data.convert import WRITERS
from treetop.data.download import NAMES
from treetop.data.formats import FORMATS
from treetop.fields import documented_fields, facts_of
from treetop.kernels import all_kernels
from treetop.kernels.warming import warm_up
from treetop.runtime import Runtime
from treetop.settings import presets
from treetop.settings.making import LINEAR, TRANSFORMER
from treetop.settings.names import unknown_name
from treetop.settings.schema import TransformerSettings


def list_presets(console: Console, as_json: bool) -> None:
    """Print name, kind of model and description of every preset."""
    listed = [
        {
            "name": name,
            "model": presets.kind_of(name),
            "about": str(presets.read_preset(name).get("about", "")),
        }
        for name in presets.names()
    ]
    if as_json:
        console.json({"presets": listed})
    else:
        print_rows(["preset", "model", "about"], listed)


def list_settings(names: list[str], console: Console, as_json: bool) -> None:
    """Print default, meaning and choices of the settings with these names, or of all settings."""
    for name in names:
        if name not in TRANSFORMER.defaults:
            raise unknown_name(name, TRANSFORMER.defaults)
    listed = [describe_setting(name) for name in names or TRANSFORMER.defaults]
    if as_json:
        console.json({"settings": listed})
        return
    for setting in listed:
        only = "" if "xr-linear" in setting["models"] else "  (xr-transformer)"
        console.result(f"{setting['name']}={shown_value(setting['default'])}{only}")
        text = setting["help"]
        if setting["choices"]:
            text += f"; one of {', '.join(setting['choices'])}"
        console.result(textwrap.fill(text, 96, initial_indent="    ", subsequent_indent="    "))


def describe_setting(name: str) -> dict[str, Any]:
    """Default, help, choices and kinds of model of a setting."""
    fields = {**documented_fields(Runtime), **documented_fields(TransformerSettings)}
    facts = facts_of(fields[name])
    kinds = {"xr-linear": LINEAR, "xr-transformer": TRANSFORMER}
    return {
        "name": name,
        "default": TRANSFORMER.defaults[name],
        "help": facts.help,
        "choices": list(facts.choices),
        "models": [kind for kind, parameters in kinds.items() if name in parameters.defaults],
    }


def list_formats(console: Console, as_json: bool) -> None:
    """Print name and description of every data format."""
    listed = [{"name": form.NAME, "about": form.ABOUT} for form in FORMATS]
    if as_json:
        console.json({"formats": listed, "writable": list(WRITERS)})
        return
    print_rows(["format", "detected by"], listed)
    console.result(f"\ntreetop data convert writes: {', '.join(WRITERS)}")


def list_datasets(console: Console, as_json: bool) -> None:
    """Print the names of the public data sets."""
    if as_json:
        console.json({"datasets": list(NAMES)})
        return
    console.result("\n".join(NAMES))
    console.message("\nDownload one: treetop data get NAME")


def print_rows(headings: list[str], records: list[dict[str, Any]]) -> None:
    """Print records as a table, all cells aligned to the left."""
    print_table(
        [headings, *([str(cell) for cell in record.values()] for record in records)], numbers=False
    )


def warm_up_kernels(jobs: int | None, console: Console) -> None:
    """Compile the kernels that are not in the cache on disk, and print how many there were."""
    with console.progress() as report:
        compiled = warm_up(all_kernels(), jobs, report)
    console.message(f"{compiled} kernels compiled" if compiled else "all kernels are compiled already")
