"""Check that pip resolves every documented `pip install` command to the wheel in the folder DIST.

Run as ``python tests/wheel_installs.py DIST`` with the Python of an environment in which the wheel is
installed. The wheel must provide the extras that the commands name. Nothing is installed or downloaded.
"""

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from treetop.runtime.extras import DISTRIBUTION, EXTRAS, install_command

ROOT = Path(__file__).parent.parent
# From a command to the end of the line or of inline code: comments name extras too.
COMMAND = re.compile(r"pip install ([^\n`]*)")
# `treetop…` or the current folder, with extras or without.
REQUIREMENT = re.compile(r"(?<![\w./-])(treetop[\w-]*|\.(?=[\['\"\s]|$))(?:\[([\w,-]*)\])?")


def documentation() -> list[Path]:
    """Return the pages with install commands."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    for folder in ("docs", "examples"):
        pages += sorted(page for page in (ROOT / folder).rglob("*") if page.suffix in (".md", ".ipynb"))
    return pages


def requirements(text: str) -> list[tuple[str, tuple[str, ...]]]:
    """Return what the `pip install` commands of a text install of this project: (name, extras)."""
    return [
        (name, tuple(extras.split(",")) if extras else ())
        for arguments in COMMAND.findall(text)
        for name, extras in REQUIREMENT.findall(arguments)
    ]


def resolve(requirement: str, dist: Path) -> dict:
    """Return pip's report on the distribution that it would install for a requirement."""
    options = ["--dry-run", "--quiet", "--no-deps", "--ignore-installed", "--report", "-"]
    sources = ["--no-index", "--find-links", str(dist)]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--isolated", "install", *options, *sources, requirement],
        env={**os.environ, "PIP_CONFIG_FILE": os.devnull},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"{requirement}: {done.stderr}"
    (item,) = json.loads(done.stdout)["install"]
    return item


def check(name: str, extras: tuple[str, ...], wheel: Path) -> None:
    """Assert that pip chooses the wheel for a requirement, and that the wheel provides the extras."""
    # A checkout's `pip install .` builds this wheel.
    requirement = DISTRIBUTION if name == "." else name
    requirement += f"[{','.join(extras)}]" if extras else ""
    item = resolve(requirement, wheel.parent)
    assert item["download_info"]["url"] == wheel.as_uri(), (requirement, item["download_info"])
    assert item["metadata"]["name"] == DISTRIBUTION, (requirement, item["metadata"]["name"])
    unknown = set(extras) - set(item["metadata"]["provides_extra"])
    assert not unknown, f"{requirement}: the wheel does not provide {unknown}"
    required = item["metadata"]["requires_dist"]
    namesakes = [entry for entry in required if re.match(r"treetop(?!-xmc\b)", entry)]
    assert not namesakes, f"the wheel requires another project: {namesakes}"


def main() -> None:
    """Check the commands in the documentation and in error messages."""
    (wheel,) = Path(sys.argv[1]).resolve().glob("*.whl")
    assert wheel.name.startswith("treetop_xmc-"), wheel
    texts = [page.read_text("utf-8") for page in documentation()]
    documented = {entry for text in texts for entry in requirements(text)}
    hinted = {entry for extra in EXTRAS for entry in requirements(install_command(extra))}
    assert len(hinted) == len(EXTRAS)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda entry: check(*entry, wheel), sorted(documented | hinted)))
    print(f"{len(documented | hinted)} install commands resolve to {wheel.name}")


if __name__ == "__main__":
    main()
