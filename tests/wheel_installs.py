"""Run with the Python of an environment that holds the wheel: `python tests/wheel_installs.py DIST`.

pip resolves every documented `pip install` command to the wheel in DIST, whose metadata has the extras
that the command names. Nothing is installed or downloaded.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from treetop.runtime.extras import DISTRIBUTION, EXTRAS, install_command

ROOT = Path(__file__).parent.parent
# From a command to the end of the line or of inline code: comments name extras too.
COMMAND = re.compile(r"pip install ([^\n`]*)")
# `treetop…` or the current folder, with extras or without.
REQUIREMENT = re.compile(r"(?<![\w./-])(treetop[\w-]*|\.(?=[\['\"\s]|$))(?:\[([\w,-]*)\])?")


def documentation() -> list[Path]:
    """The pages that tell users what to install."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def requirements(text: str) -> list[tuple[str, tuple[str, ...]]]:
    """What the `pip install` commands of a text install of this project: names with their extras."""
    return [
        (name, tuple(extras.split(",")) if extras else ())
        for arguments in COMMAND.findall(text)
        for name, extras in REQUIREMENT.findall(arguments)
    ]


def resolve(requirement: str, dist: Path) -> dict:
    """pip's report on the one distribution that it would install."""
    options = ["--dry-run", "--quiet", "--no-deps", "--ignore-installed", "--report", "-"]
    places = ["--no-index", "--find-links", str(dist)]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--isolated", "install", *options, *places, requirement],
        env={**os.environ, "PIP_CONFIG_FILE": os.devnull},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"{requirement}: {done.stderr}"
    (item,) = json.loads(done.stdout)["install"]
    return item


def check(requirement: str, extras: tuple[str, ...], wheel: Path) -> None:
    """pip takes the wheel for a requirement, and the wheel has the extras."""
    item = resolve(requirement, wheel.parent)
    assert item["download_info"]["url"] == wheel.as_uri(), (requirement, item["download_info"])
    assert item["metadata"]["name"] == DISTRIBUTION, (requirement, item["metadata"]["name"])
    unknown = set(extras) - set(item["metadata"]["provides_extra"])
    assert not unknown, f"{requirement}: the wheel does not provide {unknown}"
    others = [one for one in item["metadata"]["requires_dist"] if re.match(r"treetop(?!-xmc\b)", one)]
    assert not others, f"the wheel requires another project: {others}"


def main() -> None:
    """Check the commands of the documentation, and those in error messages."""
    (wheel,) = Path(sys.argv[1]).resolve().glob("*.whl")
    assert wheel.name.startswith("treetop_xmc-"), wheel
    texts = [page.read_text("utf-8") for page in documentation()]
    documented = {one for text in texts for one in requirements(text)}
    hinted = {one for extra in EXTRAS for one in requirements(install_command(extra))}
    assert len(hinted) == len(EXTRAS)
    for name, extras in sorted(documented | hinted):
        listed = f"[{','.join(extras)}]" if extras else ""
        # A checkout's `pip install .` builds this wheel.
        check((DISTRIBUTION if name == "." else name) + listed, extras, wheel)
    print(f"{len(documented | hinted)} install commands resolve to {wheel.name}")


if __name__ == "__main__":
    main()
