"""What the command ``data get`` does."""

from __future__ import annotations

from pathlib import Path

from treetop.cli.console import Console, shell_command
from treetop.data.download import ARCHIVE, get_dataset


def fetch_dataset(name: str, output: Path, address: str | None, console: Console | None = None) -> None:
    """Download and unpack a data set, then say where it is and what to do next."""
    console = console or Console()
    with console.progress() as report:
        report.step(f"downloading {name}")

        def show(have: int, expected: int) -> None:
            share = f"{100 * have / expected:.0f}% of " if expected else ""
            report.figures(f"{share}{(expected or have) / 1e6:,.0f} MB")

        target = get_dataset(name, output, address or ARCHIVE, show)
    console.message(f"{target}: ready; next: {shell_command('data', 'inspect', target)}")
