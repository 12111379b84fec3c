"""docs/settings.md from `treetop.settings.schema`: names, defaults and the comments beside them."""

import inspect
import re
from pathlib import Path

from treetop.settings import presets
from treetop.settings import schema as config

TARGET = Path(__file__).with_name("settings.md")
FIELD = re.compile(r"^    (\w+): (.+?) = (.+?)  # (.+)$")
PLAIN = re.compile(r"^    (\w+): (.+?) = (.+?)$")


def table(settings: type) -> list[str]:
    """Rows of the table, one a field."""
    lines = ["| setting | type | default | meaning |", "| --- | --- | --- | --- |"]
    for line in inspect.getsource(settings).split("def ")[0].splitlines():
        if line.startswith("    # "):
            lines.append(f"| **{line.strip('# ')}** | | | |")
        elif match := FIELD.match(line) or PLAIN.match(line):
            name, kind, default, meaning = (*match.groups(), "")[:4]
            kind, meaning = kind.replace("|", "or"), meaning.replace("|", "\\|")
            lines.append(f"| `{name}` | {kind} | `{default}` | {meaning} |")
    return lines


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
        *table(config.LinearSettings),
        "",
        "## XRTransformer only",
        "",
        *table(config.TransformerSettings),
        "",
        "## Presets",
        "",
        "| preset | model | what it is | settings |",
        "| --- | --- | --- | --- |",
    ]
    for name in presets.names():
        found = presets.read(name)
        listed = ", ".join(f"`{key}={value!r}`" for key, value in found["settings"].items())
        listed = "; ".join(filter(None, [f"as `{found['like']}`" if "like" in found else "", listed]))
        lines.append(f"| `{name}` | {found['model']} | {found['about']} | {listed or 'the defaults'} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    TARGET.write_text(document(), "utf-8")
