"""Some hundred mutated model folders, each opened in a process of its own: none may break it.

`benchmarks/fuzz_folder.py` opens tens of thousands.
"""

import json
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from tests.mutants import mutant

ROOT = Path(__file__).parents[2]
FOLDERS = ROOT / "tests" / "folders"
FAILURES = ("crash", "hang", "memory", "error")


@pytest.mark.skipif(sys.platform != "linux", reason="forks and limits memory")
def test_mutants_are_refused_in_one_line_or_right(tmp_path):
    kinds = "compressed,forest,tree,wordvectors"
    command = ["benchmarks/fuzz_folder.py", "--count", "120", "--seed", "7", "--kinds", kinds]
    done = subprocess.run(
        [sys.executable, *command, "--out", str(tmp_path / "out.json")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    total = json.loads((tmp_path / "out.json").read_text())["total"]
    assert {name: total[name] for name in FAILURES} == dict.fromkeys(FAILURES, 0)
    assert total["refused"] + total["right"] == 120
    assert min(total["refused"], total["right"]) > 10


def test_a_mutant_follows_from_its_seed(tmp_path):
    one, other = (mutant(FOLDERS / "tree", tmp_path / name, Random("x/1")) for name in "ab")
    assert one == other
    files = [{p.name: p.read_bytes() for p in (tmp_path / n).iterdir() if p.is_file()} for n in "ab"]
    assert files[0] == files[1]
    assert files[0] != {path.name: path.read_bytes() for path in (FOLDERS / "tree").iterdir()}
