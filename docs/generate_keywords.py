"""src/treetop/settings/keywords.py: the constructors' keyword arguments as type checkers read them."""

from pathlib import Path

from treetop.fields import documented_fields
from treetop.runtime import Runtime
from treetop.settings.making import ENCODER_OPTIONS
from treetop.settings.schema import LinearSettings, TransformerSettings

TARGET = Path(__file__).parents[1] / "src/treetop/settings/keywords.py"
HEAD = '''"""Keyword arguments of the constructors, for editors and type checkers.

Written by `make docs` from `schema.py` and `Runtime`; do not edit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict
'''


def keywords(name: str, base: str, title: str, types: dict[str, str]) -> str:
    """A TypedDict of these names and types."""
    lines = [
        f"    {key}: {kind.replace('tuple[str, ...]', 'Sequence[str]')}" for key, kind in types.items()
    ]
    return f'\n\nclass {name}({base}, total=False):\n    """{title}"""\n\n' + "\n".join(lines) + "\n"


def document() -> str:
    """The whole module."""
    place = {name: str(one.type) for name, one in documented_fields(Runtime).items()}
    linear = {name: str(one.type) for name, one in documented_fields(LinearSettings).items()}
    every = {name: str(one.type) for name, one in documented_fields(TransformerSettings).items()}
    own = {name: kind for name, kind in every.items() if name not in linear}
    return (
        HEAD
        + keywords(
            "LinearKeywords",
            "TypedDict",
            "Of XRLinear.",
            linear | {name: place[name] for name in ("threads", "verbose")},
        )
        + keywords(
            "TransformerKeywords",
            "LinearKeywords",
            "Of XRTransformer.",
            own | {name: place[name] for name in ENCODER_OPTIONS},
        )
    )


if __name__ == "__main__":
    TARGET.write_text(document(), "utf-8")
