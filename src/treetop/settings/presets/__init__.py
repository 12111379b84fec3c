"""Named sets of settings, each a short file beside this one."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from treetop.errors import TreetopError
from treetop.settings.names import renamed

FOLDER = Path(__file__).parent
# As the documentation lists them.
GENERAL = (
    "xr-linear",
    "parabel",
    "bonsai",
    "one-vs-all",
    "fast",
    "paper",
    "xr-transformer",
    "frozen",
    "paper-transformer",
)


def names() -> list[str]:
    """All presets, the general ones first."""
    found = {path.stem for path in FOLDER.glob("*.json")}
    return [*GENERAL, *sorted(found - set(GENERAL))]


@cache
def read_preset(name: str) -> dict[str, Any]:
    """A preset's file: one of ours by its name, or a user's own by its path."""
    path = FOLDER / f"{name}.json" if name in names() else Path(name)
    if path.suffix != ".json" or not path.is_file():
        raise TreetopError(
            f"unknown preset {name!r}: choose one of {', '.join(names())}, or give a .json file"
        )
    try:
        made: dict[str, Any] = json.loads(path.read_text("utf-8"))
        _ = made["model"], dict(made["settings"])
    except (ValueError, KeyError, TypeError) as error:
        raise TreetopError(f"{path}: no preset: it must have model and settings ({error})") from None
    return made


def kind_of(name: str) -> str:
    """The kind of model a preset is for."""
    return str(read_preset(name)["model"])


def settings_of(name: str, kind: str | None = None) -> dict[str, Any]:
    """The settings a preset changes, those of the preset it builds on first."""
    if kind is not None and kind_of(name) != kind:
        raise TreetopError(f"preset {name!r} is for {kind_of(name)}, not for {kind}")
    found = read_preset(name)
    below = settings_of(found["like"]) if "like" in found else {}
    return {**below, **renamed(found["settings"])}


def ensemble_of(name: str) -> tuple[list[dict[str, Any]], str]:
    """What the members of a preset's ensemble change, and how they are combined."""
    found = read_preset(name).get("ensemble")
    if found is None:
        raise TreetopError(f"preset {name!r} names no ensemble: give its members by --member")
    return [renamed(member) for member in found["members"]], found["combine"]
