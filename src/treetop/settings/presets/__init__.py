"""Presets: named sets of settings, each a JSON file in this folder."""

from __future__ import annotations

import difflib
import json
from functools import cache
from pathlib import Path
from typing import Any

from treetop.errors import TreetopError
from treetop.settings.names import renamed

FOLDER = Path(__file__).parent
# In the order in which the documentation lists them.
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
    """Return the names of all presets, the general ones first."""
    return [*GENERAL, *sorted({path.stem for path in FOLDER.glob("*.json")} - set(GENERAL))]


@cache
def read_preset(name: str) -> dict[str, Any]:
    """Read a built-in preset by name, or a user's own JSON file by path."""
    path = FOLDER / f"{name}.json" if name in names() else Path(name)
    if path.suffix != ".json" or not path.is_file():
        near = difflib.get_close_matches(name.lower().replace("_", "-"), names(), 1, 0.7)
        if near:
            raise TreetopError(f"unknown preset {name!r}: did you mean {near[0]!r}?")
        raise TreetopError(
            f"unknown preset {name!r}: choose one of {', '.join(names())}, or give a .json file"
        )
    try:
        preset: dict[str, Any] = json.loads(path.read_text("utf-8"))
        if "train_params" in preset:
            raise TreetopError(
                f"{path}: a params.json of PECOS: convert it first, "
                "by treetop import-pecos FILE -o PRESET.json"
            )
        _ = preset["model"], dict(preset["settings"])
    except (ValueError, KeyError, TypeError) as error:
        raise TreetopError(f"{path}: not a preset: it must have model and settings ({error})") from None
    return preset


def kind_of(name: str) -> str:
    """Return the kind of model that a preset is for: xr-linear or xr-transformer."""
    return str(read_preset(name)["model"])


def settings_of(name: str, kind: str | None = None) -> dict[str, Any]:
    """Return the settings of a preset, including those of the preset it is based on."""
    if kind is not None and kind_of(name) != kind:
        raise TreetopError(
            f"preset {name!r} is for {kind_of(name)}, not for {kind}: see `treetop presets`"
        )
    preset = read_preset(name)
    inherited = settings_of(preset["like"]) if "like" in preset else {}
    return {**inherited, **renamed(preset["settings"])}


def ensemble_of(name: str) -> tuple[list[dict[str, Any]], str]:
    """Return the settings of each member of a preset's ensemble, and how their scores are combined."""
    ensemble = read_preset(name).get("ensemble")
    if ensemble is None:
        raise TreetopError(f"preset {name!r} names no ensemble: specify its members with --member")
    return [member_settings(member) for member in ensemble["members"]], ensemble["combine"]


def member_settings(member: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a member: those of the preset that it is ``like``, and its own."""
    own = {name: value for name, value in member.items() if name != "like"}
    return {**(settings_of(member["like"]) if "like" in member else {}), **renamed(own)}
