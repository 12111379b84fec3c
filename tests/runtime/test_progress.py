"""Reporters: bars on a terminal, else one line per stage."""

import io
import re
import time

import pytest

from treetop.runtime import progress
from treetop.runtime.progress import (
    LineReporter,
    NotesReporter,
    Reporter,
    TerminalReporter,
    TimedReporter,
    duration,
    reporter,
)


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """A clock that tests set: the only element of a list."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "perf_counter", lambda: now[0])
    return now


def test_one_line_per_stage(clock, capsys):
    report = LineReporter()
    advance = report.step("rankers", 2)
    clock[0] = 61.0
    advance()
    report.note("the GPU failed")
    report.figures("loss 0.5")
    report.step("saving")
    clock[0] = 61.5
    report.close()
    report.close()
    assert capsys.readouterr().err.splitlines() == [
        "treetop: the GPU failed",
        "treetop: rankers: 1 min 01 s, loss 0.5",
        "treetop: saving: 0.5 s",
    ]


def test_a_long_stage_says_how_far_it_is(clock, capsys):
    report = LineReporter()
    advance = report.step("rankers", 4)
    clock[0] = 299.0
    advance()
    assert capsys.readouterr().err == ""
    clock[0] = 400.0
    advance()
    advance()
    assert capsys.readouterr().err == "treetop: rankers: 50% done, about 6 min 40 s left\n"


def wait_until(condition):
    for _ in range(500):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("nothing happened within 5 s")


def test_a_long_stage_of_unknown_length_says_how_long_it_has_taken(monkeypatch, capsys):
    monkeypatch.setattr(progress, "INTERIM_SECONDS", 0.02)
    report, lines = LineReporter(), []
    report.step("label tree")
    wait_until(lambda: lines.extend(capsys.readouterr().err.splitlines()) or len(lines) > 1)
    report.close()
    assert {re.sub(r"\d+\.\d", "0.1", line) for line in lines} == {"treetop: label tree: 0.1 s so far"}
    assert "so far" not in capsys.readouterr().err.splitlines()[-1]
    time.sleep(0.1)  # no stage is left to speak of
    assert capsys.readouterr().err == ""


def test_only_when_all_parts_are_done_is_the_time_what_there_is_to_say(monkeypatch, capsys):
    monkeypatch.setattr(progress, "INTERIM_SECONDS", 0.05)
    report, lines = LineReporter(), []
    advance = report.step("rankers", 1)
    time.sleep(0.12)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(progress, "INTERIM_SECONDS", 300.0)
    advance()
    wait_until(lambda: lines.extend(capsys.readouterr().err.splitlines()) or lines)
    report.abort()
    assert re.fullmatch(r"treetop: rankers: 0\.\d s so far", lines[0])


def test_an_aborted_stage_has_no_line(capsys):
    report = LineReporter()
    report.step("rankers")
    report.abort()
    report.close()
    assert capsys.readouterr().err == ""


def test_durations_add_up_by_name(clock):
    report = TimedReporter(LineReporter())
    for seconds in (1.0, 3.0):
        report.step("ranker")
        clock[0] += seconds
    report.close()
    assert report.seconds == {"ranker": 4.0}


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.04, "0.0 s"),
        (59.9, "59.9 s"),
        (60, "1 min 00 s"),
        (3599, "59 min 59 s"),
        (7500, "2 h 05 min"),
    ],
)
def test_durations_are_in_the_units_people_read(seconds, text):
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("stream", "term", "quiet", "kind"),
    [
        (Terminal(), "xterm", False, TerminalReporter),
        (Terminal(), "dumb", False, LineReporter),
        (io.StringIO(), "xterm", False, LineReporter),
        (Terminal(), "xterm", True, Reporter),
    ],
)
def test_the_reporter_depends_on_the_terminal(monkeypatch, stream, term, quiet, kind):
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("TERM", term)
    assert type(reporter(quiet)) is kind
    assert not isinstance(NotesReporter(), LineReporter)


@pytest.mark.parametrize(("no_color", "coloured"), [("1", False), ("", True)])
def test_bars_show_each_stage_once_and_respect_no_color(monkeypatch, no_color, coloured):
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", no_color)
    report = TerminalReporter()
    report.step("tokens", 2)()
    report.figures("loss 0.5")
    report.note("a [note]")
    report.close()
    report.step("saving")
    report.close()
    text = stream.getvalue()
    assert "a [note]" in text
    last = text.rpartition("tokens")[2]
    assert "saving" in last
    assert "tokens" not in last
    assert (re.search(r"\x1b\[[\d;]*3[\d;]*m", text) is not None) == coloured
