"""Run the code blocks of README and docs, and keep the outputs they show.

    python docs/blocks.py [PAGE ...]          rewrite the outputs on these pages (default: all)
    python docs/blocks.py --all [PAGE ...]    also run the blocks marked "not run in CI"

`tests/test_docs.py` runs the same code and compares. A comment above a block says what it is:

    (none)                          python and sh blocks are run; a page shares one folder and namespace
    <!-- not run: REASON -->        shown only
    <!-- not run in CI: REASON -->  run by `python docs/blocks.py --all`, not by the tests
    <!-- background -->             a server: started, stopped at the end of the page
    <!-- file: NAME -->             written to a file, for the blocks below it
    <!-- output -->                 standard output of the block above
    <!-- output: first 5 lines -->  the beginning of it
    <!-- output: numbers vary -->   its numbers are not compared

A page with `<!-- continues: tutorial.md -->` starts in a copy of the folder that page leaves behind.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]

FENCE = re.compile(
    r"(?:^[ ]*<!-- (?P<marker>[^\n]+?) -->\n\s*)?"
    r"^(?P<indent> *)```(?P<language>[\w-]*)[^\n]*\n(?P<code>.*?)^(?P=indent)```",
    re.MULTILINE | re.DOTALL,
)
CONTINUES = re.compile(r"^<!-- continues: (\S+) -->$", re.MULTILINE)
MARKERS = ("not run", "not run in CI", "background", "file", "output")
RUNNABLE = ("python", "sh")
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
# Times and sizes depend on the machine.
MEASURED = re.compile(r"\d[\d,.]*(?: min \d\d)?(?= ?(?:s|ms|seconds|MB|MB/s)\b)")
SHOWN_PORT = "8000"


@dataclass(frozen=True)
class Block:
    """A fenced block of a page.

    Parameters
    ----------
    page : Path
        The page it stands on.
    line : int
        Its first line, counted from 1.
    marker : str
        What the comment above it says, empty if there is none.
    language : str
        The language of the fence.
    code : str
        What is between the fences.
    span : tuple of int
        Where `code` begins and ends in the page.
    """

    page: Path
    line: int
    marker: str
    language: str
    code: str
    span: tuple[int, int]

    @property
    def place(self) -> str:
        """File and line, for messages."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def kind(self) -> str:
        """What the marker says of the block: one of `MARKERS`, or nothing."""
        return self.marker.partition(":")[0]

    @property
    def argument(self) -> str:
        """What follows the colon in the marker."""
        return self.marker.partition(":")[2].strip()

    @property
    def is_output(self) -> bool:
        """Whether it shows what the block above prints."""
        return self.kind == "output"

    @property
    def is_known(self) -> bool:
        """Whether it is run or says why not."""
        if self.kind.startswith("not run"):
            return bool(self.argument)
        return self.language in RUNNABLE or self.kind in ("file", "output")

    @cached_property
    def line_limit(self) -> int | None:
        """Number of lines an output is cut to."""
        found = re.search(r"first (\d+) lines?", self.marker)
        return int(found[1]) if found else None

    @property
    def numbers_vary(self) -> bool:
        """Whether only the words of an output are compared."""
        return "numbers vary" in self.marker

    def runs(self, everything: bool) -> bool:
        """Whether it is executed."""
        if self.kind == "not run in CI":
            return everything
        return self.language in RUNNABLE and self.kind in ("", "background")


def blocks_of(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    text = page.read_text("utf-8")
    return [
        Block(
            page,
            text.count("\n", 0, found.start("language")) + 1,
            marker if (marker := found["marker"] or "").partition(":")[0] in MARKERS else "",
            found["language"],
            found["code"],
            found.span("code"),
        )
        for found in FENCE.finditer(text)
    ]


def predecessor(page: Path) -> Path | None:
    """The page whose folder this one continues in."""
    found = CONTINUES.search(page.read_text("utf-8"))
    return page.parent / found[1] if found else None


class Workspace:
    """The folder, the names and the servers of one page while its blocks run."""

    def __init__(self, folder: Path, names: dict[str, Any] | None = None) -> None:
        self.folder = folder
        self.names = dict(names or {})
        self.servers: list[subprocess.Popen[bytes]] = []
        self.port = free_port()
        bin_folder = str(Path(sys.executable).parent)
        self.environment = {
            **os.environ,
            "PATH": os.pathsep.join([bin_folder, os.environ.get("PATH", "")]),
            "NO_COLOR": "1",
            "TERM": "dumb",
            "COLUMNS": "100",
        }

    def run(self, block: Block) -> str:
        """Standard output of a block; a block that fails raises `AssertionError`."""
        code = block.code.replace(f":{SHOWN_PORT}", f":{self.port}")
        if block.kind == "background":
            self.start(code)
            return ""
        output = self.run_python(block, code) if block.language == "python" else self.shell(block, code)
        return output.replace(f":{self.port}", f":{SHOWN_PORT}")

    def run_python(self, block: Block, code: str) -> str:
        """Execute a block in the page's namespace and folder."""
        printed = io.StringIO()
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(printed):
            exec(compile("\n" * block.line + code, str(block.page), "exec"), self.names)
        return printed.getvalue()

    def shell(self, block: Block, code: str) -> str:
        """Execute a block in bash, which stops at the first command that fails."""
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", code],
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{block.place}: {code}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def start(self, code: str) -> None:
        """Start a server on a free port and wait until it answers."""
        command = f"exec {code.strip()} --port {self.port}"
        with open(self.folder / "server.log", "wb") as log:
            process = subprocess.Popen(
                ["bash", "-c", command], env=self.environment, cwd=self.folder, stdout=log, stderr=log
            )
        self.servers.append(process)
        until = time.monotonic() + 60
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            log_text = (self.folder / "server.log").read_text("utf-8", "replace")
            assert process.poll() is None, f"the server stopped: {code}\n{log_text}"
            assert time.monotonic() < until, f"the server does not answer: {code}\n{log_text}"
            time.sleep(0.1)

    def close(self) -> None:
        """Stop the servers."""
        for process in self.servers:
            process.terminate()
            process.wait(30)


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def run_page(
    page: Path, folder: Path, names: dict[str, Any] | None = None, everything: bool = False
) -> Iterator[tuple[Block, str]]:
    """Run a page in a folder; yield each block that shows an output with what was really printed."""
    workspace, output = Workspace(folder, names), None
    try:
        for block in blocks_of(page):
            if block.is_output:
                if output is not None:
                    yield block, cut(output, block.line_limit)
            elif block.kind == "file":
                (folder / block.argument).write_text(block.code, "utf-8")
            else:
                output = workspace.run(block) if block.runs(everything) else None
    finally:
        workspace.close()


def cut(output: str, limit: int | None) -> str:
    """An output as a page shows it: without trailing spaces, and its first lines only."""
    lines = [line.rstrip() for line in output.strip("\n").splitlines()]
    return "\n".join(lines[:limit]) + "\n"


def differs(shown: str, printed: str, numbers_vary: bool = False) -> bool:
    """Whether an output is another one than shown.

    Spaces, rules of tables, times and sizes do not count; other numbers may be off by 3%, as
    another processor rounds differently.
    """

    def parts(text: str) -> tuple[str, list[float]]:
        text = MEASURED.sub("", text)
        numbers = [float(number.replace(",", "")) for number in NUMBER.findall(text)]
        return re.sub(r"\s+", " ", re.sub(r"[-─━]{2,}", "-", NUMBER.sub("0", text))).strip(), numbers

    (words, numbers), (printed_words, printed_numbers) = parts(shown), parts(printed)
    if words != printed_words:
        return True
    pairs = zip(numbers, printed_numbers, strict=True)
    return not numbers_vary and any(abs(a - b) > max(0.03 * abs(a), 0.011) for a, b in pairs)


class Folders:
    """A folder per page, copied from the page it continues; each page is run once."""

    def __init__(
        self, root: Path, names: dict[str, Any] | None = None, everything: bool = False
    ) -> None:
        self.root, self.names, self.everything = root, names, everything
        self.done: dict[Path, list[tuple[Block, str]]] = {}

    def folder(self, page: Path) -> Path:
        """Where a page runs."""
        return self.root / page.relative_to(ROOT).with_suffix("").as_posix().replace("/", "-")

    def run(self, page: Path) -> list[tuple[Block, str]]:
        """Run a page, and the one it continues before it; blocks of output with what was printed."""
        page = page.resolve()
        if page not in self.done:
            if (before := predecessor(page)) is not None:
                self.run(before)
                shutil.copytree(self.folder(before.resolve()), self.folder(page))
            else:
                self.folder(page).mkdir()
            self.done[page] = list(run_page(page, self.folder(page), self.names, self.everything))
        return self.done[page]


def rewritten(page: Path, outputs: list[tuple[Block, str]]) -> str:
    """The text of a page with the outputs that were printed."""
    text = page.read_text("utf-8")
    for block, printed in reversed(outputs):
        if differs(block.code, printed, block.numbers_vary):
            start, end = block.span
            text = text[:start] + printed + text[end:]
    return text


def main() -> None:
    """Rewrite the outputs of the pages given."""
    arguments = [argument for argument in sys.argv[1:] if argument != "--all"]
    pages = [Path(argument).resolve() for argument in arguments] or PAGES
    with tempfile.TemporaryDirectory() as name:
        folders = Folders(Path(name), everything="--all" in sys.argv)
        for page in pages:
            if any(block.is_output for block in blocks_of(page)):
                page.write_text(rewritten(page, folders.run(page)), "utf-8")
                print(page.relative_to(ROOT))


if __name__ == "__main__":
    main()
