"""Every Python and shell block of README and docs runs, page by page, in a folder of its own."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from treetop.evaluation import metrics

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"```(\w*)\n(.*?)```", re.DOTALL)
# Shown, not run: a console (what is installed, fetched or takes a GPU), and what is no code.
NOT_RUN = {"console", "ini", "text", ""}


def blocks(page):
    return [found for found in BLOCK.findall(page.read_text("utf-8")) if found[0] not in NOT_RUN]


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=lambda p: p.stem)
def test_the_blocks_of_a_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(metrics, "METRICS", metrics.METRICS.copy())  # a page registers one of its own
    texts = ["red apple", "green pear", "red cherry", "green grass", "blue sky"] * 4
    labels = [["red", "fruit"], ["green", "fruit"], ["red", "fruit"], ["green"], ["blue"]] * 4
    names = {"texts": texts, "labels": labels}
    bin_folder = str(Path(sys.executable).parent)
    environment = {**os.environ, "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}"}
    for language, code in blocks(page):
        assert language in ("python", "sh"), (page, language)
        if language == "python":
            exec(compile(code, page.name, "exec"), names)
        else:
            done = subprocess.run(
                ["bash", "-e", "-c", code], env=environment, capture_output=True, text=True
            )
            assert done.returncode == 0, f"{page}: {code}\n{done.stdout}\n{done.stderr}"


def test_every_page_is_in_the_navigation():
    listed = (ROOT / "mkdocs.yml").read_text("utf-8")
    for page in (ROOT / "docs").rglob("*.md"):
        assert f": {page.relative_to(ROOT / 'docs').as_posix()}\n" in listed, page


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), (page, target)


@pytest.mark.parametrize("script", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.stem)
def test_examples_run(script):
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
