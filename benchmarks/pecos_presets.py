"""Writes the presets ``*-pecos`` from the params.json files of the paper's experiments.

    python benchmarks/pecos_presets.py FOLDER

FOLDER has a file per member, such as eurlex-4k-bert.json, as published with PECOS
(examples/xr-transformer-neurips21). A preset per member results, and one per data set that names its
members and how PECOS's script combines them.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

from treetop.interop.pecos_params import read_params
from treetop.settings.presets import FOLDER

NAMES = {
    "eurlex-4k": "Eurlex-4K",
    "wiki10-31k": "Wiki10-31K",
    "amazoncat-13k": "AmazonCat-13K",
    "wiki-500k": "Wiki-500K",
    "amazon-670k": "Amazon-670K",
    "amazon-3m": "Amazon-3M",
}
COMBINE = {
    "eurlex-4k": "softmax",
    "wiki10-31k": "linear-rank",
    "amazoncat-13k": "softmax",
    "wiki-500k": "sigmoid",
    "amazon-670k": "softmax",
    "amazon-3m": "linear-rank",
}
# "a batch size of 32 per GPU (256 total)", section A.3 of the paper.
DEVICES = 8
# Files are published encoder by encoder: BERT, RoBERTa, XLNet; or bert1, bert2, bert3.
MEMBER = re.compile(r"(.+)-((?:bert|roberta|xlnet)\d?)")


def presets_from(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the presets by name."""
    made: dict[str, dict[str, Any]] = {}
    members: dict[str, list[str]] = {data: [] for data in NAMES}
    for path in sorted(folder.glob("*.json")):
        match = MEMBER.fullmatch(path.stem)
        assert match is not None, path
        data, member = match.groups()
        about = f"PECOS's recipe for {NAMES[data]}, member {member} of the paper's ensemble"
        if data == "amazon-3m":
            about += "; its refined tree is 32-1024-32768-L, the paper prints 8-256-8192-L"
        made[f"{path.stem}-pecos"] = {
            "about": about,
            "model": "xr-transformer",
            "settings": read_params(path, DEVICES).settings,
        }
        members[data].append(f"{path.stem}-pecos")
    for data, names in members.items():
        made[f"{data}-pecos"] = {
            "about": f"PECOS's recipes for {NAMES[data]}: the first member, and the ensemble of all",
            "model": "xr-transformer",
            "like": names[0],
            "settings": {},
            "ensemble": {"combine": COMBINE[data], "members": [{"like": name} for name in names]},
        }
    return made


def text_of(preset: dict[str, Any]) -> str:
    """Return the content of a preset's file."""
    return json.dumps(preset, indent=2) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    for name, preset in presets_from(parser.parse_args().folder).items():
        (FOLDER / f"{name}.json").write_text(text_of(preset), "utf-8")
