"""README and docs say what is so."""

import ast
import importlib.util
import re
import subprocess
from pathlib import Path

import pytest

from treetop.fields import documented_fields
from treetop.runtime import Runtime
from treetop.settings import presets
from treetop.settings.schema import LinearSettings, TransformerSettings

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("name", ["settings", "commands", "keywords"])
def test_generated_pages_are_those_of_the_code(name):
    spec = importlib.util.spec_from_file_location("made", ROOT / "docs" / f"generate_{name}.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    assert made.TARGET.read_text("utf-8") == made.document()


@pytest.mark.parametrize("kind", [LinearSettings, TransformerSettings, Runtime])
def test_the_page_of_settings_has_every_default(kind):
    rows = (ROOT / "docs" / "settings.md").read_text("utf-8")
    for one in documented_fields(kind).values():
        shown = re.findall(rf"^\| `{one.name}` \| [^|]+ \| `(.+?)` \|", rows, re.M)
        assert one.default in [ast.literal_eval(default) for default in shown], one.name


def test_the_readme_is_short_and_names_what_exists():
    text = (ROOT / "README.md").read_text("utf-8")
    assert text.count("\n") < 120
    for name in presets.GENERAL:
        assert f"| `{name}` |" in text
    for target in re.findall(r"\]\(([^)]+)\)", text):
        assert (ROOT / target).exists(), target


def test_the_code_named_in_the_method_exists():
    text = (ROOT / "docs" / "method.md").read_text("utf-8")
    for cell in re.findall(r"\| (`[\w/]+\.py`.*) \|$", text, re.MULTILINE):
        for path, names in re.findall(r"`([\w/]+\.py)`(?:: ((?:`[\w.]+`(?:, )?)+))?", cell):
            source = (ROOT / "src" / "treetop" / path).read_text("utf-8")
            for name in re.findall(r"`([\w.]+)`", names):
                assert re.search(rf"(def|class) {name.split('.')[-1]}\b", source), (path, name)


def test_no_file_of_the_package_is_too_long_to_read():
    listed = subprocess.run(
        ["git", "ls-files", "src"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split()
    for name in listed:
        if name.endswith(".py"):
            assert len((ROOT / name).read_text("utf-8").splitlines()) < 450, name
