"""benchmarks/side_by_side.py runs treetop's two sides end to end on a tiny data set and recipe."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.interop.recipe import recipe
from tests.tiny import WORDS, save_encoder

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
LABELS = WORDS[:12]


@pytest.fixture
def data(tmp_path):
    """Texts of three words each, whose labels are their first two words."""
    folder = tmp_path / "words"
    folder.mkdir()
    for split, count in (("train", 60), ("test", 24)):
        lines = [(LABELS[n % 12], LABELS[(5 * n + 3) % 12], WORDS[12 + n % 6]) for n in range(count)]
        (folder / f"{split}.txt").write_text("".join(" ".join(words) + "\n" for words in lines))
        labels = ("\t".join(dict.fromkeys(words[:2])) + "\n" for words in lines)
        (folder / f"{split}.labels").write_text("".join(labels))
    return folder


def run_script(tmp_path, data, *options):
    command = [sys.executable, BENCHMARKS / "side_by_side.py", data, "--steps=3/3", "--batch=8"]
    command += ["--recipe", tmp_path / "toy.json", "--encoder", tmp_path / "encoder", "--layers=1"]
    command += ["--max-length=8", "--work", tmp_path / "work", "--out", tmp_path / "results.json"]
    done = subprocess.run([*command, *options], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_both_sides_train_and_finished_runs_are_not_repeated(tmp_path, data):
    save_encoder(tmp_path / "encoder")
    (tmp_path / "toy.json").write_text(json.dumps(recipe()))
    first = run_script(tmp_path, data)
    result = json.loads((tmp_path / "results.json").read_text())["words"]
    # libpecos has no interpreter here.
    assert list(result["runs"]) == ["treetop, the recipe", "treetop, its defaults"]
    changed = result["changes"]
    assert changed["train_params.matcher_params_chain.max_steps"] == [[4, 6], [3, 3]]
    assert len(first.splitlines()) == 2
    for runs in result["runs"].values():
        run = runs["0"]
        wall = run["steps"][0] + run["outside"][0]
        assert run["steps"][0] > 0
        # Two clocks, one inside the other: on a busy machine, some milliseconds lie between them.
        assert wall == pytest.approx(run["seconds"]["train"], rel=0.01, abs=0.02)
        assert run["peak_gb"] > 0.1
        assert run["metrics"]["P@1"] > 100 / 12
    assert run_script(tmp_path, data) == ""
