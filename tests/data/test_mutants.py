"""Damaged data files are read right or refused in one line; `benchmarks/fuzz_data.py` tries more."""

import os
import random
import signal
import time

import pytest

from tests.data.mutating import FINE, answers, judge, seed_data, write_mutant

MUTANTS = 150


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_damaged_files_are_read_right_or_refused(tmp_path):
    pytest.importorskip("pyarrow")
    pytest.importorskip("openpyxl")
    (tmp_path / "seeds").mkdir()
    names = seed_data(tmp_path / "seeds")
    assert {name: judge(tmp_path / "seeds" / name) for name in names} == dict.fromkeys(names, "read")
    folders = []
    for number in range(MUTANTS):
        folders.append(tmp_path / f"{number}-{names[number % len(names)]}")
        write_mutant(tmp_path / "seeds", names[number % len(names)], folders[-1], random.Random(number))
    told = {folder.name: answer for folder, answer in answers(folders, seconds=120)}
    assert {name: answer for name, answer in told.items() if answer not in FINE} == {}
    assert set(told.values()) == set(FINE)


def test_crashes_and_hangs_are_noticed(tmp_path, monkeypatch):
    for name in ("crash", "hang", "exit"):
        (tmp_path / name).mkdir()

    def wrong(folder):
        if folder.name == "crash":
            os.kill(os.getpid(), signal.SIGKILL)
        if folder.name == "exit":
            os._exit(3)
        time.sleep(60)

    monkeypatch.setattr("tests.data.mutating.judge", wrong)
    folders = [tmp_path / name for name in ("crash", "hang", "exit")]
    assert [answer for _, answer in answers(folders, seconds=0.5)] == [
        "crash: SIGKILL",
        "hang: no answer within 0.5 s",
        "crash: exit code 3",
    ]
