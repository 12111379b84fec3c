"""Short runs of benchmarks/kills.py and benchmarks/swaps.py, which kill and swap at random moments."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks a server process")


def measured(script, tmp_path, *arguments):
    command = [sys.executable, str(BENCHMARKS / script), *arguments, "-o", str(tmp_path / "out.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads((tmp_path / "out.json").read_text())


@pytest.mark.slow
def test_killed_runs_end_in_the_models_of_undisturbed_ones(tmp_path):
    pytest.importorskip("torch")
    names = ("fine-tune and resume", "save over a model", "convert to a file")
    only = [part for name in names for part in ("--only", name)]
    results = measured("kills.py", tmp_path, "--kills", "9", "--seed", "1", *only)
    faults = [fault for row in results["scenarios"].values() for fault in row["faults"]]
    assert faults == []
    assert results["kills"] == 9


@pytest.mark.slow
def test_loads_during_swaps_are_never_mixed(tmp_path):
    results = measured("swaps.py", tmp_path, "--loads", "150")
    assert results["mixed"] == 0
    assert results["left behind"] == []
    assert set(results["results"]) <= {"one", "two", "replaced before its encoder was opened"}
    assert results["swaps"] > 0
