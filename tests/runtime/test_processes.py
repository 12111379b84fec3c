"""Which processes belong together, faults on request, and the messages about them."""

import json
import re
import sys

import pytest

from treetop import Runtime, XRLinear
from treetop.errors import TreetopError
from treetop.runtime import processes
from treetop.runtime.failpoints import NODE, VARIABLE, failpoint
from treetop.runtime.process_group import ProcessTeam
from treetop.runtime.processes import how_it_ended, start_team, team_for
from treetop.runtime.team import Place, Team

PLACE = Place(rank=1, size=4, local_rank=1, local_size=2, address="10.0.0.1", port=29500)


def test_a_place_is_read_from_the_variables_of_torchrun():
    assert PLACE.environment()["WORLD_SIZE"] == "4"
    assert Place.of_environment(PLACE.environment()) == PLACE
    assert Place.of_environment({}) is None
    assert Place.of_environment({**PLACE.environment(), "WORLD_SIZE": "1"}) is None


def test_one_process_is_a_team_that_shares_with_nobody():
    team = start_team(1, stall_seconds=60)
    assert type(team) is Team
    assert team.leads
    assert team.agree("value") == "value"
    assert team.torch_threads(None, in_order=False) is None
    assert team.torch_threads(4, in_order=True) == 1


def test_programs_that_call_fit_are_not_started_by_torchrun(monkeypatch):
    for name, value in PLACE.environment().items():
        monkeypatch.setenv(name, value)
    with pytest.raises(TreetopError, match=r"run torchrun … -m treetop train, or pass runtime="):
        team_for(Runtime())


def test_torchrun_decides_how_many_processes_there_are(monkeypatch):
    team = Team()
    team.size = 4
    monkeypatch.setattr(processes, "_joined", [team])
    assert team_for(Runtime()) is team
    assert team_for(Runtime(processes=4)) is team
    with pytest.raises(
        TreetopError, match="processes is 2, but torchrun started 4: leave out processes"
    ):
        team_for(Runtime(processes=2))


def test_the_end_of_a_process_is_described():
    assert how_it_ended(-9) == "was ended by SIGKILL"
    assert how_it_ended(2) == "failed (exit code 2)"


def test_a_cluster_requires_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    message = (
        "clusters require an extra package (ray is not installed): pip install 'treetop-xmc[cluster]'"
    )
    with pytest.raises(TreetopError, match=re.escape(message)):
        XRLinear().fit(["a", "b"], [["x"], ["y"]], runtime=Runtime(cluster="auto"))


@pytest.mark.parametrize("fault", ["truncate", "corrupt"])
def test_a_failpoint_damages_a_file_once(fault, tmp_path, monkeypatch):
    path = tmp_path / "file"
    point = {"at": "after file", "step": 2, "fault": fault, "once": str(tmp_path / "once")}
    monkeypatch.setenv(VARIABLE, json.dumps(point))
    whole = bytes(range(100))
    for stage, step, damaged in (("before file", 2, 0), ("after file", 1, 0), ("after file", 2, 1)):
        path.write_bytes(whole)
        failpoint(stage, step, path)
        assert (path.read_bytes() != whole) == damaged
    path.write_bytes(whole)
    failpoint("after file", 2, path)  # not again
    assert path.read_bytes() == whole


def test_a_failpoint_is_on_one_machine(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, json.dumps({"at": "rankers", "node": "second", "fault": "disk"}))
    failpoint("rankers", 3)
    monkeypatch.setenv(NODE, "second")
    failpoint("PIFA", 3)
    with pytest.raises(OSError, match="No space left on device"):
        failpoint("rankers", 3)


def test_if_no_process_is_silent_one_was_slow():
    class Beats:
        def __init__(self, names):
            self.names = names

        def silent(self):
            return self.names

    team = object.__new__(ProcessTeam)
    team.beats = Beats(["process 1 of 2 (node, process 5)"])
    assert str(team.failure()).startswith(
        "process 1 of 2 (node, process 5) stopped or does not answer: "
    )
    team.beats = Beats([])
    assert "a process did not answer in time, though all are alive" in str(team.failure())


def test_a_failpoint_finds_the_disk_full_in_one_process_only(monkeypatch, tmp_path):
    monkeypatch.setenv(VARIABLE, json.dumps([{"at": "saving", "process": 1, "fault": "disk"}]))
    failpoint("saving", file=tmp_path)
    monkeypatch.setenv("RANK", "1")
    with pytest.raises(OSError, match="No space left on device"):
        failpoint("saving", file=tmp_path)
